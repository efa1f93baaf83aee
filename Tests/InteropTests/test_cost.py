"""What a packet may not cost, counted in the optimised build."""
import subprocess

from support.server import BUILD


def test_a_million_more_packets_allocate_nothing_and_take_no_lock():
    """`make bench ONLY=million`: its figures are counts, so a busy machine does not change them."""
    done = subprocess.run([BUILD / "bench", "--only", "million"], capture_output=True, text=True, timeout=110)
    figures = {line[:44].strip(): float(line.split()[-2]) for line in done.stdout.splitlines() if line.startswith("a million")}
    print(f"figures: {figures}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert figures["a million packets more: allocations"] == figures["a million packets more: locks"] == 0
