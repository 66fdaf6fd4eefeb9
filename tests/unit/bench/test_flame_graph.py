import pytest

from tests.bench.flame_graph import small_graph
from tests.support.paths import ROOT

FRAME = (
    '<g><title>{name} ({file}) ({samples} samples, 1%)</title><rect x="0%" y="52" width="1%" height="15" fg:x="0" '
    'fg:w="{samples}"/><text x="0.25%" y="62.50">{name} ({file})</text></g>'
)


def graph(*frames: tuple[str, str, int], total: int = 1000) -> str:
    inside = "".join(FRAME.format(name=name, file=file, samples=samples) for name, file, samples in frames)
    title = '<text id="title" x="50%">py-spy record -o /home/me/x.svg</text>'
    return f'<svg>{title}<svg id="frames" total_samples="{total}">{inside}</svg></svg>'


def test_narrow_frames_are_left_out() -> None:
    small = small_graph(graph(("fold", "effects.py", 4), ("narrow", "effects.py", 3)), "project")
    assert "fold" in small
    assert "narrow" not in small


def test_a_label_is_cut_to_its_frame() -> None:
    small = small_graph(graph(("a_long_name_of_a_function", "effects.py", 50)), "project")
    assert ">a_long_…</text>" in small
    assert "<title>a_long_name_of_a_function (effects.py) (50 samples" in small


@pytest.mark.parametrize("folder", [f"{ROOT}/mnemolog/", "/opt/lib/python3.11/site-packages/mnemolog/"])
def test_files_are_told_without_the_folders_of_the_machine(folder: str) -> None:
    small = small_graph(graph(("fold", f"{folder}effects.py", 900)), "project: CPU")
    assert ">fold (mnemolog/effects.py)</text>" in small
    assert "<title>fold (mnemolog/effects.py) (900 samples" in small
    assert ">project: CPU</text>" in small
    assert "/home/me" not in small


def test_a_folder_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match=r"/home/me/x\.py"):
        small_graph(graph(("fold", "/home/me/x.py", 900)), "project")


def test_an_idle_process_has_no_graph() -> None:
    with pytest.raises(ValueError, match="no sample"):
        small_graph(graph(total=0), "project")
