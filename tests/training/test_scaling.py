"""The arithmetic of many workers, where it can be told by hand."""

import pytest

from dragoman.training.scaling import Job, Network, all_reduce_seconds, memory, predict

JOB = Job(parameters=1_000_000, micro_batches=64, tokens=64_000, micro_batch_seconds=0.5, optimizer_seconds=0.1)
FAST, SLOW = Network(1e12, 0.0), Network(1e6, 1e-3)


def test_one_worker_sends_nothing_and_is_the_measure_of_efficiency():
    alone = predict(JOB, 1, SLOW)
    assert alone.all_reduce == 0
    assert alone.seconds == pytest.approx(64 * 0.5 + 0.1)
    assert alone.efficiency == pytest.approx(1)


def test_a_ring_of_two_sends_the_gradient_once():
    assert all_reduce_seconds(4_000_000, 2, Network(1e6, 0.0)) == pytest.approx(4.0)
    assert all_reduce_seconds(0, 5, Network(1e6, 0.25)) == pytest.approx(2 * 4 * 0.25)


def test_many_workers_send_about_twice_the_gradient_however_many_they_are():
    times = [all_reduce_seconds(4_000_000, n, Network(1e6, 0.0)) for n in (8, 64, 1024)]
    assert times == pytest.approx([7.0, 7.875, 7.992], abs=1e-3)


def test_more_workers_than_micro_batches_are_of_no_use():
    assert predict(JOB, 64, FAST).compute == predict(JOB, 1024, FAST).compute == 0.5


def test_a_slow_network_eats_the_gain():
    assert predict(JOB, 8, FAST).efficiency > 0.97
    assert predict(JOB, 8, SLOW).efficiency < 0.5


def test_shards_need_a_share_of_the_memory():
    whole, part = memory(JOB, 8, sharded=False), memory(JOB, 8, sharded=True)
    assert whole == 4 * 5 * 1_000_000
    assert part == 4 * 4 * 1_000_000 / 8
