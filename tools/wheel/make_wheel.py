"""Writes a wheel from a list of files; reproducible: fixed times, sorted."""

import argparse
import base64
import hashlib
import pathlib
import zipfile

EPOCH = (1980, 1, 1, 0, 0, 0)


def parse_arguments():
  parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
  parser.add_argument("--name", required=True)
  parser.add_argument("--version", required=True)
  parser.add_argument("--tag", required=True, help="cp312-cp312-linux_x86_64")
  parser.add_argument("--python-requires", default="")
  parser.add_argument("--summary", default="")
  parser.add_argument("--requires", action="append", default=[])
  parser.add_argument("--console-script", action="append", default=[])
  parser.add_argument(
    "--file", action="append", default=[], help="path-in-wheel=path"
  )
  parser.add_argument("--out", type=pathlib.Path, required=True)
  return parser.parse_args()


def text(*lines):
  return "".join(line + "\n" for line in lines).encode()


def metadata(args):
  lines = [
    "Metadata-Version: 2.1",
    f"Name: {args.name}",
    f"Version: {args.version}",
  ]
  if args.summary:
    lines.append(f"Summary: {args.summary}")
  if args.python_requires:
    lines.append(f"Requires-Python: {args.python_requires}")
  return text(*lines, *(f"Requires-Dist: {r}" for r in args.requires))


def contents(args, info):
  """Returns the files of the wheel, its RECORD excepted."""
  files = {}
  for item in args.file:
    inside, _, path = item.partition("=")
    files[inside] = pathlib.Path(path).read_bytes()
  files[f"{info}/METADATA"] = metadata(args)
  pure = args.tag.endswith("-none-any")
  files[f"{info}/WHEEL"] = text(
    "Wheel-Version: 1.0",
    "Generator: make_wheel",
    f"Root-Is-Purelib: {str(pure).lower()}",
    f"Tag: {args.tag}",
  )
  if args.console_script:
    entry_points = text("[console_scripts]", *args.console_script)
    files[f"{info}/entry_points.txt"] = entry_points
  return files


def record_line(name, data):
  digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
  return f"{name},sha256={digest.rstrip(b'=').decode()},{len(data)}"


def write(out, files):
  with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in files.items():
      entry = zipfile.ZipInfo(name, EPOCH)
      entry.compress_type = zipfile.ZIP_DEFLATED
      mode = 0o755 if name.endswith(".so") else 0o644
      entry.external_attr = mode << 16
      archive.writestr(entry, data)


def main():
  args = parse_arguments()
  info = f"{args.name.replace('-', '_')}-{args.version}.dist-info"
  files = dict(sorted(contents(args, info).items()))
  lines = [record_line(name, data) for name, data in files.items()]
  record = f"{info}/RECORD"
  write(args.out, files | {record: text(*lines, f"{record},,")})


main()
