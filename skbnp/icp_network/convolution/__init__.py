"""Convolutional networks of unknown architecture under the Indian chefs process."""
