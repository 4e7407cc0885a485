"""The project was called residua: its variable is still read."""

from covaria.datasets.places import own_folder


def test_the_old_variable_is_read_with_a_notice(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("COVARIA_DATA", raising=False)
    monkeypatch.setenv("RESIDUA_DATA", str(tmp_path))
    assert own_folder() == str(tmp_path)
    assert "RESIDUA_DATA is now called COVARIA_DATA" in capsys.readouterr().err


def test_the_new_variable_comes_first_and_without_a_notice(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COVARIA_DATA", str(tmp_path))
    monkeypatch.setenv("RESIDUA_DATA", "/nowhere")
    assert own_folder() == str(tmp_path)
    assert capsys.readouterr().err == ""
