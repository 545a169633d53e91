"""The release file says which cluster is used and how; secrets do not belong there."""

from pathlib import Path

import pytest

from sfumato.engine.connect import connect
from sfumato.errors import EngineError, ReleaseError
from sfumato.release import load
from tests.conftest import tiny_frame
from tests.docs.blocks import ROOT, blocks


def with_settings(folder: Path, settings: str) -> Path:
    """The release of an economy with another section at its end."""
    path = folder / "settings.toml"
    path.write_text((folder / "release.toml").read_text(encoding="utf-8") + settings, encoding="utf-8")
    return path


def test_settings_are_read_with_or_without_quotes_as_the_texts_that_spark_wants(release_folder: Path) -> None:
    settings = '\n[data.spark]\nmaster = "yarn"\nspark.executor.cores = 4\n"spark.speculation" = true\n'
    data = load(with_settings(release_folder, settings)).data
    assert data.spark == {"master": "yarn", "spark.executor.cores": "4", "spark.speculation": "true"}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('spark.hadoop.fs.s3a.secret.key = "hush"', "no secrets"),
        ('spark.hadoop.fs.s3a.access.key = "hush"', "no secrets"),
        ('spark.authenticate.secret = "hush"', "no secrets"),
        ('spark.ssl.keyPassword = "hush"', "no secrets"),
        ('"spark.hadoop.fs.azure.account.key.office" = "hush"', "no secrets"),
        ('spark.hadoop.fs.s3a.encryption.key = "hush"', "no secrets"),
        ('"spark.hadoop.fs.s3a.server-side-encryption.key" = "hush"', "no secrets"),
        ('spark.hadoop.fs.azure.sas.container.office = "hush"', "no secrets"),
        ('spark.hadoop.fs.azure.sas = "hush"', "no secrets"),
        ('spark.executor.extraJavaOptions = "-Djavax.net.ssl.keyStorePassword=hush"', "no secrets"),
        ('spark.executor.extraJavaOptions = "-Xmx1g -Dfs.s3a.secret.key=hush"', "no secrets"),
        ('spark.driver.extraJavaOptions = "-Doffice.key=hush"', "no secrets"),
        ('spark.sql.warehouse.dir = "s3a://office:hush@bucket/warehouse"', "no secrets"),
        ('spark.hadoop.office.connection = "AccountKey=hush;name=office"', "no secrets"),
        ('executor.memory = "8g"', "begins with spark."),
        ('spark.jars = ["hush"]', "one value"),
    ],
)
def test_a_setting_that_does_not_belong_there_is_refused_without_its_value(
    release_folder: Path, setting: str, words: str
) -> None:
    with pytest.raises(ReleaseError, match=words) as refused:
        load(with_settings(release_folder, f"\n[data.spark]\n{setting}\n"))
    assert "hush" not in str(refused.value)


def test_settings_that_only_sound_like_a_secret_are_read(release_folder: Path) -> None:
    settings = {
        "spark.io.encryption.keySizeBits": "256",
        "spark.network.crypto.saslFallback": "false",
        "spark.redaction.regex": "(?i)secret|password|access[.]key",
        "spark.executor.extraJavaOptions": "-Djavax.net.ssl.keyStore=/etc/office.jks -XX:+UseG1GC",
    }
    written = "".join(f'"{name}" = "{value}"\n' for name, value in settings.items())
    assert load(with_settings(release_folder, f"\n[data.spark]\n{written}")).data.spark == settings


def test_settings_change_no_question_and_are_in_no_description_of_the_data(release_folder: Path) -> None:
    plain = load(release_folder / "release.toml")
    told = load(with_settings(release_folder, '\n[data.spark]\nmaster = "spark://head:7077"\n'))
    assert told.data.links() == plain.data.links()
    assert told.data.model_dump_json() == plain.data.model_dump_json()


def test_the_sections_that_the_page_about_clusters_shows_are_understood(release_folder: Path) -> None:
    shown = [block.text for block in blocks(ROOT / "docs/cluster.md") if block.kind == "toml"]
    sections = [text for text in shown if text.startswith("[data.spark]")]
    assert len(sections) >= 3
    for section in sections:
        assert load(with_settings(release_folder, f"\n{section}")).data.spark["master"] == "spark://head:7077"


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark"], indirect=True)
def test_a_session_with_other_settings_is_refused_and_not_silently_used(tiny: Path, engine: str) -> None:
    with connect(tiny_frame(tiny, engine=engine)):
        pass
    other = tiny_frame(tiny, engine=engine, spark={"spark.executor.memory": "17m"})
    with pytest.raises(EngineError, match="a process of its own"), connect(other):
        pass
