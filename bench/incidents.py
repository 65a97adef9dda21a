"""What happens to machines while visitors are there: one is killed, or all get a new program.

Each step waits until the balancer has answered more requests, so a run does the same on every
machine, however fast it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from balancers import Balancer
from machines import Machine, wait_until


@dataclass(frozen=True)
class Scene:
    """The machines of one run, and their balancer."""

    machines: Sequence[Machine]
    balancer: Balancer
    step: int
    """How many requests are answered between two events."""

    def wait_for_requests(self) -> None:
        """Waits until as many requests as a step has were made."""
        goal = sum(self.balancer.requests()) + self.step
        wait_until(f"{self.step} requests", lambda: sum(self.balancer.requests()) >= goal)

    def wait_for_its_share(self, machine: Machine) -> None:
        """Waits until a machine gets requests again, as many as it does in a step."""
        wait_until(f"machine {machine.number} to be used", lambda: self.balancer.is_up(machine))
        place = machine.number - 1
        goal = self.balancer.requests()[place] + self.step // (2 * len(self.machines))
        wait_until(f"requests of machine {machine.number}", lambda: self.balancer.requests()[place] >= goal)


def nothing(scene: Scene) -> None:
    """Lets visitors come and go."""
    scene.wait_for_requests()


def kill(scene: Scene) -> None:
    """Kills one machine after the other in the middle of its work, and starts it again."""
    for machine in scene.machines:
        scene.wait_for_requests()
        machine.kill()
        scene.wait_for_requests()
        machine.start()
        scene.wait_for_its_share(machine)


def upgrade(scene: Scene) -> None:
    """Replaces the program of one machine after the other, which goes on to serve."""
    for machine in scene.machines:
        scene.wait_for_requests()
        machine.upgrade()
        scene.wait_for_its_share(machine)


def restart(scene: Scene) -> None:
    """Takes one machine after the other out, stops it when it has finished, and starts it again."""
    for machine in scene.machines:
        scene.wait_for_requests()
        scene.balancer.take_out(machine)
        wait_until(f"machine {machine.number} to finish", lambda: not scene.balancer.in_flight(machine))
        machine.stop()
        scene.wait_for_requests()
        machine.start()
        scene.balancer.put_back(machine)
        scene.wait_for_its_share(machine)


@dataclass(frozen=True)
class Incident:
    """An incident with the name by which a report has it."""

    title: str
    happens: Callable[[Scene], None]
    kills: int = 0
    """How often a machine ends with what it has begun."""


INCIDENTS = {
    "steady": Incident("nothing happens", nothing),
    "kill": Incident("each machine is killed (`kill -9`) and started again", kill, kills=3),
    "upgrade": Incident("`kirin upgrade` on one machine after the other", upgrade),
    "restart": Incident("one machine after the other is taken out, stopped, started, put back", restart),
}
