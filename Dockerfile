# The command line in a container of Linux: docs/guides/containers.md. The target `spark` is an image of drivers and
# executors on Kubernetes: docs/guides/spark-pipeline.md.

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

FROM spark:4.2.0-scala2.13-java17-python3-ubuntu AS spark
USER 0
# The image has pyspark. The other requirements are those of the extra `spark`.
RUN --mount=from=build,source=/wheels,target=/wheels \
    PIP_BREAK_SYSTEM_PACKAGES=1 pip3 install --no-cache-dir --only-binary :all: \
    /wheels/*.whl 'pandas>=2.2,<3' 'sqlglot>=30.24,<31'
COPY examples/spark_pipeline.py /opt/pipeline/
USER 185

FROM python:3.14-slim-trixie
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --only-binary :all: /wheels/*.whl \
 && useradd --create-home --uid 1000 delta
USER 1000
WORKDIR /data
ENTRYPOINT ["delta-variant"]
CMD ["--help"]
