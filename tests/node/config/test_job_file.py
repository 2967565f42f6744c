"""Job files: what is read, and what is refused before anything starts."""

from __future__ import annotations

from typing import get_args

import pytest

from vertikal.algorithms.kernel_machine.settings import AvfkamSettings
from vertikal.errors import InputError
from vertikal.mesh.collectives import SHAPES
from vertikal.node.config.job_file import Job
from vertikal.parameters import fields_of

GOOD = """
timeout = 5
[settings]
n_components = 32
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.toml").write_text(GOOD)
    return tmp_path


def load(folder, text):
    (folder / "job.toml").write_text(text)
    return Job.load(folder / "job.toml")


def test_a_job(folder):
    job = Job.load(folder / "job.toml")
    assert (job.names, job.label_parties) == (("bank", "shop"), ("bank",))
    assert job.algorithm_settings().n_components == 32
    assert job.secret("bank") != job.secret("bank")


def test_every_shape_of_the_mesh_can_be_named():
    shapes = next(one.type for one in fields_of(Job) if one.name == "shape")
    assert set(get_args(shapes)) == set(SHAPES)


def test_a_job_names_its_program(folder):
    more = GOOD.replace("n_comp", "validation = 0.2\nn_comp")
    job = load(folder, 'algorithm = "avfkam"\n' + more)
    settings = job.algorithm_settings()
    assert isinstance(settings, AvfkamSettings)
    assert (settings.loss, settings.validation) == ("squared_hinge", 0.2)
    with pytest.raises(InputError, match=r"^settings must be some of .* got 'validation'"):
        load(folder, GOOD.replace("n_comp", "validation = 0.2\nn_comp"))
    with pytest.raises(InputError, match=r"^algorithm must be one of \['admm', .*\], got 'x'"):
        load(folder, 'algorithm = "x"\n' + GOOD)


@pytest.mark.parametrize(
    ("written", "bits", "cache_size"),
    [
        ("", 8, None),
        ('feature_map = "fourier"', 8, None),
        ('feature_map = { name = "fourier", bits = 16 }', 16, None),
        ('feature_map = "landmarks"', 16, None),
        ('feature_map = { name = "landmarks", bits = 32 }', 32, None),
        ('cache_size = "2 GB"', 8, 2 * 10**9),
        ("cache_size = 5000", 8, 5000),
    ],
)
def test_bits_and_bytes_as_the_estimators_take_them(folder, written, bits, cache_size):
    settings = load(folder, GOOD.replace("n_comp", f"{written}\nn_comp")).algorithm_settings()
    assert (settings.feature_map.bits, settings.cache_size) == (bits, cache_size)


def test_the_digest_is_of_what_all_share(folder):
    job = Job.load(folder / "job.toml")
    assert load(folder, GOOD.replace("bank.csv", "elsewhere.csv")).digest == job.digest
    for change in (("32", "33"), ("timeout = 5", "timeout = 6"), ("shop]", "mill]")):
        assert load(folder, GOOD.replace(*change)).digest != job.digest


def test_a_secret_seed_repeats_a_run(folder):
    job = load(folder, "secret_seed = 3\n" + GOOD)
    assert job.secret("bank") == job.secret("bank") != job.secret("shop")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "timeout = 5",
            "timeout = 0",
            "^job file 'job.toml': timeout must be a positive number of seconds, got 0$",
        ),
        ("timeout = 5", "timeout = inf", "timeout must be a positive number of seconds, got inf"),
        ("timeout = 5", "deadline = 5", r"^job file 'job.toml': keys must be some of .*'deadline'"),
        ("timeout = 5", "masking = 'x'", "masking must be one of 'pads', 'trees', got 'x'"),
        ("timeout = 5", "shape = 'x'", "shape must be one of 'star', 'tree', 'cycle', got 'x'"),
        ("timeout = 5", "on_loss = 'x'", "on_loss must be one of 'wait', 'stop', got 'x'"),
        ("timeout = 5", "secret_seed = -1", "secret_seed must be a whole number from 0 on"),
        ("timeout = 5", f"secret_seed = {1 << 256}", "secret_seed must be a number of at most 256"),
        ("timeout = 5", "algorithm = 3", "algorithm must be a text, got 3"),
        ("[settings]\nn_components = 32", "settings = 3", "settings must be a table of keys"),
        ('shop.csv"', 'shop.csv"\nid = 3', r"\[parties.shop\]: keys must be some of .*'id'"),
        ('shop.csv"', 'shop.csv"\ncolumns = 3', r"\[parties.shop\]: columns must be a list"),
        ('shop.csv"', 'shop.csv"\nrows = 1', r"\[parties.shop\]: rows must be .* from 2 on"),
        ('[parties.shop]\ntable = "shop.csv"', "[parties]\nshop = 3", "parties must be a table"),
        ("n_components = 32", "n_components = 'x'", "n_components must be a positive whole number"),
        ("n_components = 32", "directionz = 3", "settings must be some of .* 'directionz'"),
        ("n_components = 32", "outputs = 3", "settings must be without 'outputs'"),
        ("n_components = 32", "kernel = 'x'", "kernel must be one of"),
        (
            "n_components = 32",
            "cache_size = 'much'",
            "cache_size must be a positive number of bytes",
        ),
        ("n_components = 32", "feature_map = 'few'", "feature_map must be one of 'fourier', "),
        ('label = "y"', "", "label must be named by one party"),
        ('[parties.shop]\ntable = "shop.csv"', "", "parties must be two at least"),
    ],
)
def test_job_files_that_are_refused(folder, old, new, said):
    with pytest.raises(InputError, match=said):
        load(folder, GOOD.replace(old, new))


PREDICTING = GOOD.replace('"bank.csv"', '"bank.csv"\ntest = "bank.test"').replace(
    '"shop.csv"', '"shop.csv"\ntest = "shop.test"'
)


def test_a_job_that_predicts_is_another_job(folder):
    job = load(folder, PREDICTING)
    assert job.predicts
    assert job.digest != load(folder, GOOD).digest


def test_all_parties_predict_or_none(folder):
    text = PREDICTING.replace('test = "shop.test"', "")
    with pytest.raises(InputError, match=r"test must be named by all .*, got only by \['bank'\]"):
        load(folder, text)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{a = " * 10_000,
        "[settings]\n" + ".".join(["a"] * 3_000) + " = 1\n" + GOOD,
    ],
)
def test_what_is_nested_too_deeply_is_refused_in_words(folder, text):
    with pytest.raises(InputError, match=r"^job file 'job.toml': ") as refused:
        load(folder, text)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("algorithm", ["fdskl", "avfkam", "admm"])
@pytest.mark.parametrize(("seed", "got"), [("-1", "-1"), ("1.5", "1.5"), ("true", "True")])
def test_seeds_are_numbers_from_0_on(folder, algorithm, seed, got):
    text = GOOD.replace("n_components = 32", f"seed = {seed}")
    with pytest.raises(InputError, match=rf"^seed must be a whole number from 0 on, got {got}$"):
        load(folder, f'algorithm = "{algorithm}"\n' + text)


LABELLED = """
algorithm = "fdskl"
[settings]
{settings}
[parties.lender]
table = "a"
label = "y"
{lender}
[parties.bank]
table = "b"
{bank}
"""


@pytest.mark.parametrize(
    ("lender", "bank", "settings", "said"),
    [
        ("classes = ['a']", "", "", r"classes must be two at least, each once, got \['a'\]"),
        ("classes = [1, 1.0]", "", "", "classes must be two at least, each once"),
        ("classes = ['a', 'b']\npositive = 'c'", "", "", "positive must be one of two classes"),
        ("classes = [1, 2, 3]\npositive = 2", "", "", "positive must be one of two classes"),
        ("classes = [1, 2]\nclass_weight = { '3' = 1 }", "", "", "class_weight must be of the cla"),
        ("class_weight = 'even'", "", "", "class_weight must be a table of keys and values, 'b"),
        ("class_weight = { a = -1 }", "", "", "class_weight must be"),
        ("", "classes = ['a', 'b']", "", "classes of bank must be left out: lender says it for"),
        ("", "weight = 'w'", "", "weight of bank must be named by all label parties, or by nobody"),
        ("weight = 'w'", "label = 'y'", "", "weight of bank must be named by all label parties"),
        ("positive = 1", "", "regression = true\nloss = 'square'", "positive must be left out in"),
        ("", "label = 'y'", "label_parts = true", "classes must be listed with label_parts"),
        ("classes = [0, 1]", "", "label_parts = true", "label_parts must be False with one label"),
        (
            "classes = [0, 1]\nclass_weight = 'balanced'",
            "label = 'y'",
            "label_parts = true",
            "class_weight must be numbers by class with label_parts",
        ),
        (
            "classes = [0, 1]",
            "label = 'y'\n[evaluation]\nholdout = 0.2",
            "label_parts = true",
            "evaluation must be left out with label_parts",
        ),
    ],
)
def test_classes_and_weights_that_contradict_one_another(tmp_path, lender, bank, settings, said):
    path = tmp_path / "job.toml"
    path.write_text(LABELLED.format(lender=lender, bank=bank, settings=settings))
    with pytest.raises(InputError, match=said):
        Job.load(path)


@pytest.mark.parametrize("algorithm", ["kernel", "admm"])
def test_algorithms_without_labels_in_parts_say_so(tmp_path, algorithm):
    path = tmp_path / "job.toml"
    text = LABELLED.format(lender="", bank="label = 'y'", settings="label_parts = true")
    path.write_text(text.replace("fdskl", algorithm, 1))
    with pytest.raises(InputError, match=f"must be left out with algorithm '{algorithm}'"):
        Job.load(path)


def test_the_classes_of_a_job_are_part_of_what_all_share(tmp_path):
    path = tmp_path / "job.toml"
    digests = set()
    for lender in (
        "",
        "classes = [1, 2]",
        "classes = [1, 2]\npositive = 1",
        "classes = [1, 2, 3]",
        "classes = [1, 2, 3]\nclass_weight = 'balanced'",
    ):
        path.write_text(LABELLED.format(lender=lender, bank="", settings=""))
        job = Job.load(path)
        digests.add(job.digest)
        assert job.algorithm_settings().outputs == (3 if "3" in lender else 1)
    assert len(digests) == 5
    assert job.label_plan("lender").classes == ("1", "2", "3")
    assert job.label_plan("bank") is None


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("12h", 43200), ("7d", 604800)])
def test_a_job_says_how_long_it_waits_for_approvals(tmp_path, text, seconds):
    path = tmp_path / "job.toml"
    body = LABELLED.format(lender="", bank="", settings="")
    path.write_text(f'expires = "{text}"' + body)
    assert Job.load(path).lifetime == seconds
    for wrong in ("0d", "7", "7w", "-1h", "7d7d", "7d\\n"):
        path.write_text(f'expires = "{wrong}"' + body)
        with pytest.raises(InputError, match="expires must be a whole number with m, h or d"):
            Job.load(path)
