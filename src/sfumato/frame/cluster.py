"""Settings of Spark that a release file may give, by their full names; secrets are refused."""

import re
from typing import Any

_SECRET = re.compile(
    r"secret|password|passwd|token|credential|(access|account|private|session)[._-]?key"
    r"|encryption[._-]?key([._-]|$)|(^|[._-])sas([._-]|$)",
    re.IGNORECASE,
)
_SECRET_INSIDE = re.compile(  # what a value says, such as the options of Java or an address
    r"(secret|password|passwd|token|credential|signature|access[._-]?key|account[._-]?key)[\w.-]*[\"']?\s*[=:]"
    r"|\bsig=|-D[^\s=]*key=|://[^/\s:@]*:[^/\s@]+@",
    re.IGNORECASE,
)


def spark_settings(written: dict[str, Any], within: str = "") -> dict[str, str]:
    """Settings of Spark by their full names, as texts.

    >>> spark_settings({"master": "spark://head:7077", "spark": {"speculation": True, "executor": {"cores": 2}}})
    {'master': 'spark://head:7077', 'spark.speculation': 'true', 'spark.executor.cores': '2'}
    """
    found: dict[str, str] = {}
    for key, value in written.items():
        name = f"{within}{key}"
        if isinstance(value, dict):
            found |= spark_settings(value, f"{name}.")
        elif name != "master" and not name.startswith("spark."):
            raise ValueError(f"`master`, or a setting whose name begins with spark., but not '{name}'")
        elif _SECRET.search(name) or _SECRET_INSIDE.search(str(value)):
            raise ValueError(
                f"no secrets, as a release file is read by many: '{name}' belongs in the environment or in Spark's own "
                "configuration (spark-defaults.conf)"
            )
        elif isinstance(value, list):
            raise ValueError(f"one value for '{name}', not a list")
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
