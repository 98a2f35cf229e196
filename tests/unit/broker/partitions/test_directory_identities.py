import pytest

from ottla.storage.directory import DirectoryRefused
from tests.unit.broker.serving import serving

TWO = ["/data-0", "/data-1"]


@pytest.mark.parametrize(
    ("key", "sentence"), [("cluster.id", "belong to 2 clusters"), ("directory.id", "is a copy")]
)
def test_directories_that_do_not_belong_together_are_refused(key: str, sentence: str) -> None:
    with serving(directories=TWO) as world:
        world.stop()
        first, second = (world.disk.read(f"{path}/meta.properties") for path in TWO)
        lines = dict(line.split("=") for line in second.decode().split() if "=" in line)
        same = dict(line.split("=") for line in first.decode().split() if "=" in line)
        lines[key] = same[key] if key == "directory.id" else "AAAAAAAAAAAAAAAAAAAAEA"
        file = world.disk.open("/data-1/meta.properties")
        file.truncate(0)
        file.append(["\n".join(f"{name}={value}" for name, value in lines.items()).encode()])
        with pytest.raises(DirectoryRefused, match=sentence):
            world.start()
        assert not world.disk.locked
        file.truncate(0)
        file.append([second])
        world.start()
