"""The commands of the laboratory, plugged into `sfumato`."""

COMMANDS = {
    "demo": (
        "sfumato_lab.commands.demo:demo",
        "The whole tour: an economy, its tables, and what their protection costs.",
    ),
    "economy": ("sfumato_lab.commands.economy:economy_app", "Make synthetic data with the shape of real ones."),
    "reproduce": (
        "sfumato_lab.commands.reproduce:reproduce_app",
        "Do the evaluation of a paper again, beside its figures.",
    ),
}
"""Where each command is found, and what `sfumato --help` says of it."""
