"""Which way of using several threads is the faster one here and now: found by timing, since no rule holds.

Threads that compute one step together read every weight once, each a part of it, and wait for one another some hundred
times; on a busy machine that takes longer than it saves. The bits are the same either way.
"""


class Pace:
    """Whether all threads or one compute the next step: whichever was faster of late, the other tried now and then."""

    TRY = 64  # steps between two looks at the slower way

    def __init__(self) -> None:
        self.steps = 0
        self.seconds: dict[int, float] = {}  # a step, by the number of threads

    def choose(self, threads: int) -> int:
        """So many, or one."""
        if threads == 1:
            return 1
        self.steps += 1
        if len(self.seconds) < 2:
            return 1 if self.seconds else threads
        faster = min(self.seconds, key=lambda threads: self.seconds[threads])
        if self.steps % self.TRY == 0:
            return next(other for other in self.seconds if other != faster)
        return faster

    def note(self, threads: int, took: float) -> None:
        self.seconds[threads] = 0.7 * self.seconds.get(threads, took) + 0.3 * took


class Ways:
    """Whether threads search apart, each with sentences of its own, or together, each with a part of every matrix:
    whichever was faster of late, the other tried now and then."""

    TRY = 8  # portions between two looks at the slower way

    def __init__(self) -> None:
        self.seconds: dict[bool, float] = {}  # a token, by whether they were together
        self.portions = 0

    def choose(self) -> tuple[bool, bool]:
        """Whether together; and whether that is only tried, with a few sentences."""
        self.portions += 1
        if len(self.seconds) < 2:
            return True not in self.seconds, True
        faster = self.seconds[True] < self.seconds[False]
        return (faster, False) if self.portions % self.TRY else (not faster, True)

    def note(self, together: bool, seconds: float) -> None:
        self.seconds[together] = (self.seconds.get(together, seconds) + seconds) / 2
