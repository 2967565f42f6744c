"""vertikal demo --recommender."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from vertikal.cli.demo import demo
from vertikal.demo.recommender import catalogue, generated_ratings


def test_it_prints_items_and_what_the_server_saw(tmp_path):
    out = tmp_path / "folder"
    result = CliRunner().invoke(demo, ["--recommender", "--seed", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "What the server saw" in result.output
    assert sum(item.split(": ")[1] in result.output for item in catalogue()) > 5
    assert result.output.count("asked for the rows of") == 3
    assert not Path(out).exists()


def test_the_ratings_are_bits_and_follow_the_seed():
    ratings = generated_ratings(3)
    assert ratings.shape == (120, len(catalogue()))
    assert set(ratings.ravel()) == {0, 1}
    assert (ratings == generated_ratings(3)).all()
    assert (ratings != generated_ratings(4)).any()
