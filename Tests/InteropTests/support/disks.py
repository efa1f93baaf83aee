"""File systems of their own, which can be frozen. Needs root."""
import contextlib
import subprocess


@contextlib.contextmanager
def own_disk(place, size):
    """A file system at the folder `place`, as large as `size` says ("512M")."""
    place.mkdir(parents=True, exist_ok=True)
    image = place.with_name(f"{place.name}.image")
    try:
        subprocess.run(["truncate", "-s", size, image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", place], check=True)
    finally:
        image.unlink(missing_ok=True)


@contextlib.contextmanager
def frozen(place):
    """Whatever is written at `place` stands still."""
    subprocess.run(["fsfreeze", "--freeze", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", place], check=True)
