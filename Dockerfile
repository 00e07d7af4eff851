# The command line in a container of Linux: docs/guides/containers.md.

FROM rust:1.95-slim-trixie AS build
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && python3 -m venv /tools \
 && /tools/bin/pip install --no-cache-dir maturin==1.16.0
WORKDIR /source
COPY . .
RUN /tools/bin/maturin build --release --locked --compatibility linux --interpreter python3 --out /wheels

FROM python:3.14-slim-trixie
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --only-binary :all: /wheels/*.whl \
 && useradd --create-home --uid 1000 delta
USER 1000
WORKDIR /data
ENTRYPOINT ["delta-variant"]
CMD ["--help"]
