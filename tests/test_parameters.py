"""Parameters that are declared once: constructor, rules and documentation that follow from it."""

import inspect
from numbers import Integral, Real

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, Options

from skbnp.estimators.parameters import Declared, parameter
from skbnp.estimators.settings import SamplerSettings
from skbnp.laws import Beta, Gamma, Grid


class Shared(Declared, BaseEstimator):
    """What two have in common."""

    n_chains: int = parameter(
        default=4,
        kind="int",
        rules=[Interval(Integral, 1, None, closed="left")],
        text="Independent chains.",
    )
    seed: int | None = parameter(
        default=None, kind="int or None", rules=[Integral, None], text="Seed."
    )


@pytest.mark.parametrize(
    ("value", "kind"), [(np.uint8(200), int), (np.int64(3), int), (np.float16(2.0), float)]
)
def test_numbers_of_numpy_become_those_of_python(value, kind):
    for model in (Shared(n_chains=value), Shared().set_params(n_chains=value)):
        assert type(model.n_chains) is kind and model.n_chains == value
        assert clone(model).n_chains == value


class Model(Shared):
    """A model.

    What it is.

    Attributes
    ----------
    n_ : int
        A number.
    """

    _renamed = {"colour": "colour is called color now"}

    color: str = parameter(
        default="red",
        kind="str",
        rules=[str],
        text=r"""
        Color, :math:`\\alpha`.

        Two paragraphs.
        """,
    )
    n_chains: int = parameter(default=2, kind=None, rules=None, text="Few chains.")


class Further(Model):
    """Another model."""

    width: float = parameter(default=1.5, kind="float", rules=[float], text="Width.")


class Sized(Shared):
    """A part that another model has."""

    size: int = parameter(default=1, kind="int", rules=[Integral], text="Size.")


class Two(Sized, Model):
    """A model of two parts."""

    size: int = parameter(default=5)


class Explicit(Model):
    """Its own constructor."""

    def __init__(self, *, color="blue"):
        self.color = color


def test_what_is_declared_again_stands_where_it_was():
    """What is None in the declaration is that of before, also by way of two classes."""
    assert str(inspect.signature(Two)) == "(*, size=5, color='red', n_chains=2, seed=None)"
    assert Two._declared["n_chains"].text == "Few chains."
    assert Two._declared["size"].text == "Size."


def test_signature_has_own_parameters_first():
    signature = inspect.signature(Further)
    assert str(signature) == "(*, width=1.5, color='red', n_chains=2, seed=None)"
    assert all(one.kind is one.KEYWORD_ONLY for one in signature.parameters.values())
    assert Further._get_param_names() == ["color", "n_chains", "seed", "width"]


def test_what_is_given_is_stored_and_nothing_else():
    model = Model(color="green")
    assert vars(model) == {"color": "green", "n_chains": 2, "seed": None}
    assert vars(clone(model)) == vars(model)
    assert repr(model) == "Model(color='green')"
    assert not hasattr(Model, "color")


def test_rules_are_inherited():
    assert Model._parameter_constraints["n_chains"] == Shared._parameter_constraints["n_chains"]
    assert set(Further._parameter_constraints) == {"width", "color", "n_chains", "seed"}


def test_what_draws_depend_on_is_inherited():
    class Of(Shared):
        seed = parameter(default=3, of_chains=False)
        often: int = parameter(default=1, kind="int", rules=[Integral], text="Often.")

    class Below(Of):
        seed = parameter(default=4, text="Another seed.")
        n_chains = parameter(default=2)

    assert {name: one.of_chains for name, one in Below._declared.items()} == {
        "n_chains": True, "seed": False, "often": True
    }  # fmt: skip
    with pytest.raises(AttributeError, match="NoneType"):  # no base that has the rules

        class _(Declared):
            often: int = parameter(default=1, kind="int", text="Often.")


def test_bools_are_no_integers():
    class Of(Shared):
        loud: bool = parameter(default=True, kind="bool", rules=["verbose"], text="Loud.")
        fits: bool = parameter(default=True, kind="bool", rules=["boolean"], text="Fits.")
        never: bool = parameter(
            default=False, kind="False", rules=[Options(bool, {False})], text="Never."
        )

    Of()._refuse_bools()
    with pytest.raises(ValueError, match="n_chains must not be a bool, got True"):
        Of(n_chains=True)._refuse_bools()


def test_documentation():
    assert Model.__doc__.splitlines() == [
        "A model.",
        "",
        "What it is.",
        "",
        "Parameters",
        "----------",
        'color : str, default="red"',
        r"    Color, :math:`\\alpha`.",
        "",
        "    Two paragraphs.",
        "n_chains : int, default=2",
        "    Few chains.",
        "seed : int or None, default=None",
        "    Seed.",
        "",
        "Attributes",
        "----------",
        "n_ : int",
        "    A number.",
    ]
    assert Further.__doc__.splitlines()[:5] == [
        "Another model.",
        "",
        "Parameters",
        "----------",
        "width : float, default=1.5",
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"colour": "red"}, "argument 'colour': colour is called color now"),
        ({"n_chain": 3}, "argument 'n_chain'. Did you mean 'n_chains'?"),
        ({"what": 3}, "argument 'what'"),
    ],
)
def test_unknown_parameters_are_refused(given, sentence):
    with pytest.raises(TypeError) as error:
        Further(**given)
    assert str(error.value).startswith("Further.__init__() got an unexpected keyword")
    assert str(error.value).endswith(sentence)


def test_positional_arguments_are_refused():
    with pytest.raises(TypeError, match=r"Model.__init__\(\) takes 1 positional"):
        Model("red")


def test_a_class_may_have_its_own_constructor():
    assert str(inspect.signature(Explicit)) == "(*, color='blue')"


def test_and_so_may_those_below_it():
    class Below(Explicit):
        """Nothing new."""

    assert vars(Below(color="red")) == {"color": "red"}


def test_rules_are_not_written_twice():
    with pytest.raises(TypeError, match="Rules must declare its parameters"):

        class Rules(Model):
            """Rules beside the declarations."""

            _parameter_constraints = {"color": [str]}


class Settings(SamplerSettings):
    """How it is sampled."""

    n_tries: int = parameter(
        default=3, kind="int", rules=[Interval(Integral, 1, None, closed="left")], text="Tries."
    )


class Sampled(Shared):
    """A model with a law and settings."""

    concentration: float | Gamma = parameter(
        default=Gamma(1, 1),
        kind="float or Gamma",
        rules=[Interval(Real, 0, None, closed="neither"), Gamma],
        text="Strength.",
    )
    masses: tuple | Gamma = parameter(
        default=(1.0, Gamma(1, 1)), kind="tuple", rules=[tuple, Gamma], text="Masses."
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((2, 3), r"got \(2, 3\): write concentration=Gamma\(2, 3\), from skbnp.laws"),
        ([2, 3], r"got \[2, 3\]: write concentration=Gamma\(2, 3\), from skbnp.laws"),
        ("sample", r"write concentration=Gamma\(shape=1.0, rate=1.0\), from skbnp.laws"),
        (-1.0, "must be a float in the range .* or an instance of 'skbnp.laws.Gamma'"),
        (Beta(1, 1), "or an instance of 'skbnp.laws.Gamma'. Got Beta"),
    ],
)
def test_what_is_no_law_is_refused_with_the_law_to_write(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        Sampled(concentration=given)._validate_params()


def test_numbers_laws_and_sequences_of_them_pass():
    for given in (1.0, Gamma(2, 3)):
        Sampled(concentration=given)._validate_params()
    Sampled(masses=(1.0, 2.0))._validate_params()
    assert clone(Sampled(concentration=Gamma(2, 3))).concentration == Gamma(2, 3)
    assert "default=Gamma(shape=1.0, rate=1.0)" in Sampled.__doc__
    assert repr(Sampled(concentration=Gamma(1, 1))) == "Sampled()"


def test_settings_are_nested_parameters():
    model = Sampled().set_params(masses=Gamma(1, 2))
    assert model.get_params()["masses"] == Gamma(1, 2)
    assert Settings(n_tries=5).to_data() == {"n_tries": 5}
    assert repr(clone(Settings(n_tries=5))) == "Settings(n_tries=5)"
    with pytest.raises(ValueError, match="n_tries"):
        Settings(n_tries=0)._validate_params()
    with pytest.raises(ValueError, match="n_tries must not be a bool"):
        Settings(n_tries=True)._refuse_bools()


class Nested(Shared):
    """A model with settings of its sampler."""

    _renamed = {"n_attempts": "write sampler=Settings(n_tries=...)"}

    sampler: Settings | None = parameter(
        default=None, kind="Settings or None", rules=[Settings, None], text="How it is sampled."
    )
    spread: tuple | None = parameter(
        default=None, kind="array-like", rules=["array-like", None], text="Spread."
    )
    rate: Gamma = parameter(
        default=Gamma(1, Gamma(1, 5)), kind="Gamma", rules=[Gamma], text="A law of a law."
    )
    values: Grid = parameter(default=Grid((1, 2)), kind="Grid", rules=[Grid], text="A grid.")
    share: float | Beta = parameter(
        default=0.0,
        kind="float or Beta",
        rules=[Interval(Real, 0, 1, closed="both"), Beta],
        text="Share.",
    )


def test_settings_that_are_none_can_be_set_and_stay_apart():
    first, second = Nested(), Nested()
    assert first.set_params(sampler__n_tries=7).sampler.n_tries == 7
    assert second.sampler is None and Settings().n_tries == 3
    given = Settings(n_tries=2)
    assert Nested().set_params(sampler=given, sampler__n_tries=5).sampler is given


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_attempts": 3}, r"Invalid parameter 'n_attempts' for Nested: write sampler=Settings"),
        ({"rate__shape": 3.0}, "a law is replaced as a whole"),
        ({"colour": 3}, "Invalid parameter 'colour'"),
    ],
)
def test_what_cannot_be_set_is_said(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        Nested().set_params(**params)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"spread": Gamma(2, 1)}, r"spread: must not be a law, got Gamma\(shape=2.0, rate=1.0\)"),
        ({"rate": (1, 2)}, r"write rate=Gamma\(shape=1.0, rate=Gamma\(shape=1.0, rate=5.0\)\)"),
        ({"rate": (1, 2, 3)}, r"write rate=Gamma\(shape=1.0, rate=Gamma"),
        ({"values": (1, 2)}, r"write values=Grid\(\(1, 2\)\)"),
        ({"share": "sample"}, r"write share=Beta\(a, b\), from skbnp.laws"),
        ({"share": (1, 2, 3)}, r"write share=Beta\(a, b\), from skbnp.laws"),
        ({"share": Gamma(1, 1)}, r"or an instance of 'skbnp.laws.Beta'. Got Gamma"),
    ],
)
def test_what_to_write_can_be_written(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        Nested(**given)._validate_params()
