"""Artwork of icons under open licenses, in the catalog: npm packages, each pinned by version and sha256."""

from __future__ import annotations

from dataclasses import dataclass

from beaufort._core.catalog._entries import Asset, Entry, assets, entries
from beaufort._core.catalog._packages import Npm


@dataclass(frozen=True)
class IconPackage:
    """The icons of one style, as one rendition of them was published."""

    style: str
    rendition: int
    """0 is the current one."""
    package: str
    release: str
    license: str
    author: str
    home: str
    size: int
    sha256: str
    without: tuple[str, ...] = ()
    """Classes whose icons are not taken."""

    @property
    def file(self) -> str:
        """Its name in the catalog, which is npm's for the file."""
        return f"icons-open/{self.package.removeprefix('@').replace('/', '-')}-{self.release}.tgz"


_SILHOUETTES = ("family",)
"""Since Emoji 15.1 most vendors draw all families as a few silhouettes, which say nothing about a style."""
_MICROSOFT = ("Microsoft Corporation", "https://github.com/microsoft/fluentui-emoji")
_GOOGLE = ("Google Inc.", "https://github.com/googlefonts/noto-emoji")
_EMOJI_ONE = ("Emoji One", "https://github.com/EmojiTwo/emojitwo")

ICON_PACKAGES = (
    IconPackage(
        *("microsoft", 0, "@lobehub/fluent-emoji-3d", "1.1.0", "MIT", *_MICROSOFT, 15_792_027),
        sha256="c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58",
    ),
    IconPackage(
        *("microsoft", 2, "@iconify-json/fluent-emoji-flat", "1.2.6", "MIT", *_MICROSOFT, 1_172_438),
        sha256="7d064769dee690815f823bc5bcc511d957198caf9f5edd8dd9c1aa48a6aeb175",
    ),
    IconPackage(
        *("microsoft", 3, "@iconify-json/fluent-emoji-high-contrast", "1.2.6", "MIT", *_MICROSOFT, 1_054_969),
        sha256="0b92d48c90d2200bd499e3cdd09a127ca6a8c8ddefd34c35eb5a1e4994012ae0",
    ),
    IconPackage(
        *("google", 0, "@iconify-json/noto", "1.2.9", "Apache-2.0", *_GOOGLE, 3_102_958),
        sha256="3e918d88fc945c0bb3d468dbace6f88caef67f01c9f0e7bcae0915a042e8f1ad",
        without=_SILHOUETTES,
    ),
    IconPackage(
        *("google", 2, "@iconify-json/noto-v1", "1.2.5", "Apache-2.0", *_GOOGLE, 1_587_591),
        sha256="2bf62c26c2c2884aa99e90aec942cdaee17a5921f05690694f4978ad4b017c37",
    ),
    IconPackage(
        *("twitter", 0, "@iconify-json/twemoji", "1.2.5", "CC-BY-4.0"),
        *("Twitter", "https://github.com/jdecked/twemoji", 1_555_888),
        sha256="19046dff7d8707ce96212ec86468b36ac5f8e60409629dd13f809265c6d0ebb7",
        without=_SILHOUETTES,
    ),
    IconPackage(
        *("openmoji", 0, "@iconify-json/openmoji", "1.2.29", "CC-BY-SA-4.0"),
        *("OpenMoji", "https://github.com/hfg-gmuend/openmoji", 1_264_633),
        sha256="03181e2c156cab35cf4a62f1f7886bd971d59212e75ac3f189d5a4cae3930fc5",
    ),
    IconPackage(
        *("emoji-one", 0, "@iconify-json/emojione", "1.2.3", "CC-BY-4.0", *_EMOJI_ONE, 687_690),
        sha256="26a14f44284407e8bcde91799388dca2bfd91dbcd55a97f425524a1c5b73610e",
    ),
    IconPackage(
        *("emoji-one", 2, "@iconify-json/emojione-v1", "1.2.3", "CC-BY-SA-4.0"),
        *("Emoji One", "https://github.com/joypixels/emojione-legacy", 3_704_153),
        sha256="6641d59d48a42823fdc2b84e7427e9f302944eb98d2c7d94d6e67c139e7b37b3",
    ),
    IconPackage(
        *("emoji-one", 3, "@iconify-json/emojione-monotone", "1.2.1", "CC-BY-4.0", *_EMOJI_ONE, 1_094_642),
        sha256="40b90004bafb406b59266155ef9b7e1dd67bf2947fc8db8d07388776f4d0d04e",
    ),
    IconPackage(
        *("mozilla", 0, "@iconify-json/fxemoji", "1.2.2", "Apache-2.0"),
        *("Mozilla", "https://github.com/mozilla/fxemoji", 1_034_876),
        sha256="f3e72b3c59d05e1db03b7e308d55c0d05bd7ba3f625a90da1b79313c12858eef",
    ),
)
"""What icons-open is made from."""

for _one in ICON_PACKAGES:
    assets.register(
        _one.file,
        Asset(
            _one.file,
            _one.sha256,
            _one.license,
            f"{_one.package} {_one.release}",
            [Npm(f"{_one.package}@{_one.release}")],
            size=_one.size,
        ),
    )
entries.register(
    "icons-open",
    Entry(
        "icons-open",
        "Emoji of six vendors under open licenses, which `beaufort make icons-open` makes a data set of",
        "Apache-2.0, CC-BY-4.0, CC-BY-SA-4.0, MIT",
        "eleven packages of the npm registry",
        "https://www.npmjs.com",
        tuple(one.file for one in ICON_PACKAGES),
    ),
)
