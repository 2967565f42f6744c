"""Job files and tables: what is read, and what is refused before anything starts."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.algorithms.kernel_machine.avfkam_settings import AvfkamSettings
from vertikal.errors import InputError, PartyUnknown
from vertikal.node.config.job_file import Job

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
    (tmp_path / "bank.csv").write_text("u,y\n1,0\n2.5,1\n-3,0\n")
    (tmp_path / "shop.csv").write_text("v,w\n1,2\n3,4\n5,7\n")
    (tmp_path / "job.toml").write_text(GOOD)
    return tmp_path


def load(folder, text):
    (folder / "job.toml").write_text(text)
    return Job.load(folder / "job.toml")


def test_a_job_and_its_tables(folder):
    job = Job.load(folder / "job.toml")
    assert (job.names, job.label_parties) == (("bank", "shop"), ("bank",))
    assert job.algorithm_settings().n_components == 32
    table, labels = job.read("bank", folder)
    assert (table.columns, table.rows) == (("u",), 3)
    assert labels.targets.ravel().tolist() == [-1, 1, -1]
    assert job.read("shop", folder)[1] is None
    assert job.secret("bank") != job.secret("bank")


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
        ('ring_bits = "auto"', 8, None),
        ("ring_bits = 16", 16, None),
        ('feature_map = "landmarks"', 16, None),
        ('feature_map = "landmarks"\nring_bits = 32', 32, None),
        ('cache_size = "2 GB"', 8, 2 * 10**9),
        ("cache_size = 5000", 8, 5000),
    ],
)
def test_bits_and_bytes_as_the_estimators_take_them(folder, written, bits, cache_size):
    settings = load(folder, GOOD.replace("n_comp", f"{written}\nn_comp")).algorithm_settings()
    assert (settings.ring_bits, settings.cache_size) == (bits, cache_size)


def test_the_digest_is_of_what_all_share(folder):
    job = Job.load(folder / "job.toml")
    assert load(folder, GOOD.replace("bank.csv", "elsewhere.csv")).digest == job.digest
    for change in (("32", "33"), ("timeout = 5", "timeout = 6"), ("shop]", "mill]")):
        assert load(folder, GOOD.replace(*change)).digest != job.digest


def test_a_secret_seed_repeats_a_run(folder):
    job = load(folder, "secret_seed = 3\n" + GOOD)
    assert job.secret("bank") == job.secret("bank") != job.secret("shop")


def test_regression_takes_any_numbers(folder):
    job = load(folder, GOOD.replace("n_comp", "loss = 'square'\nregression = true\nn_comp"))
    (folder / "bank.csv").write_text("u,y\n1,0.5\n2.5,1\n-3,7\n")
    assert job.read("bank", folder)[1].targets.ravel().tolist() == [0.5, 1, 7]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("timeout = 5", "timeout = 0", "timeout must be a positive number"),
        ("timeout = 5", "deadline = 5", "job file 'job.toml'"),
        ("n_components = 32", "n_components = 'x'", "settings: "),
        ("n_components = 32", "directionz = 3", "settings must be some of .* 'directionz'"),
        ("n_components = 32", "outputs = 3", "settings must be without 'outputs'"),
        ("n_components = 32", "kernel = 'x'", "kernel must be one of"),
        (
            "n_components = 32",
            "cache_size = 'much'",
            "cache_size must be a positive number of bytes",
        ),
        ("n_components = 32", "ring_bits = 'few'", "settings: .*ring_bits"),
        ('label = "y"', "", "label must be named by one party"),
        ('[parties.shop]\ntable = "shop.csv"', "", "parties must be two at least"),
    ],
)
def test_job_files_that_are_refused(folder, old, new, said):
    with pytest.raises(InputError, match=said):
        load(folder, GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("u,y\n1,0\n2\n", "table of bank: 'bank.csv', line 3 must hold 2 numbers, got '2'"),
        ("u,y\n1,0\nx,1\n", "line 3 must hold 2 numbers, got 'x,1'"),
        ("", "a CSV file with titles and rows"),
        ("u,u\n1,2\n", "distinct titles"),
        ("u,v\n1,2\n", r"label of bank must be one of the columns \['u', 'v'\], got 'y'"),
        ("u,y\n1,0\n2,1\n3,2\n", "label of bank must be of two classes, got 3 classes"),
        ("u,y\n1,0\n2,nan\n", "label of bank must be finite numbers"),
        ("u,y\n1,0\n1,1\n", "column 'u' of party 'bank' must vary"),
        ("u,y\n1,0\ninf,1\n", "column 'u' of party 'bank' must hold finite numbers"),
        ("y\n0\n1\n", "at least one column of features"),
    ],
)
def test_tables_that_are_refused(folder, text, said):
    (folder / "bank.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        Job.load(folder / "job.toml").read("bank", folder)


def test_a_table_that_is_not_there_and_a_party_that_is_not(folder):
    (folder / "shop.csv").unlink()
    job = Job.load(folder / "job.toml")
    with pytest.raises(InputError, match=r"table of shop: 'shop\.csv' cannot be read"):
        job.read("shop", folder)
    with pytest.raises(PartyUnknown, match="'zoe' is not a party of this job"):
        job.read("zoe", folder)
    assert np.isfinite(job.timeout)


PREDICTING = GOOD.replace('"bank.csv"', '"bank.csv"\ntest = "bank.test"').replace(
    '"shop.csv"', '"shop.csv"\ntest = "shop.test"'
)


def test_rows_to_predict_have_the_columns_of_the_table(folder):
    job = load(folder, PREDICTING)
    assert job.predicts
    assert job.digest != load(folder, GOOD).digest
    table, _ = job.read("bank", folder)
    for text in ("u,y\n7,0\n", "y,u\n0,7\n", "u\n7\n"):
        (folder / "bank.test").write_text(text)
        test = job.read_test("bank", folder, table)
        assert (test.columns, test.block(slice(None)).tolist()) == (("u",), [[7.0]])
    for text, said in (
        ("v\n7\n", r"test of bank must be of the columns \('u',\), got \('v',\)"),
        ("u\nnan\n", "column 'u' of party 'bank' must hold finite numbers"),
    ):
        (folder / "bank.test").write_text(text)
        with pytest.raises(InputError, match=said):
            job.read_test("bank", folder, table)


def test_all_parties_predict_or_none(folder):
    text = PREDICTING.replace('test = "shop.test"', "")
    with pytest.raises(InputError, match=r"test must be named by all .*, got only by \['bank'\]"):
        load(folder, text)
