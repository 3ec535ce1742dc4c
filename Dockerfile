# syntax=docker/dockerfile:1
# `tools` installs the build tools, `native` builds the Rust extension, `build` creates a virtual
# environment from the hashed lock files, and the last stage adds a Java 17 runtime. A container
# downloads nothing at its start, and writes only to /tmp and to the configured warehouse.
#
#   docker build -t ingestd .
#   docker run --init --read-only --tmpfs /tmp -p 8080:8080 -v lake:/lake \
#     -v "$PWD/ingestd.yaml:/etc/ingestd/ingestd.yaml:ro" ingestd

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS tools
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements-build.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --quiet --require-hashes -r requirements-build.lock

FROM rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082 AS native
WORKDIR /src
COPY --from=tools /opt/build/bin/maturin /opt/build/bin/maturin
COPY native ./native
RUN /opt/build/bin/maturin build --quiet --release --locked --manifest-path native/Cargo.toml --target-dir /opt/native --out /opt/wheelhouse

FROM tools AS build
COPY requirements.lock ./
RUN /opt/build/bin/pip wheel --quiet --require-hashes --no-build-isolation --wheel-dir /opt/wheelhouse -r requirements.lock
COPY --from=native /opt/wheelhouse /opt/wheelhouse
COPY pyproject.toml README.md LICENSE ./
COPY ingestd ./ingestd
COPY paimon ./paimon
RUN /opt/build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /opt/wheelhouse ./paimon . \
    && python -m venv /opt/ingestd \
    && /opt/ingestd/bin/pip install --quiet --no-index --find-links /opt/wheelhouse "ingestd[native,otel,hdfs,compare]" \
    && /opt/ingestd/bin/pip uninstall --quiet --yes setuptools pip

FROM eclipse-temurin:17.0.20_8-jre-jammy@sha256:e85989f3e4d136b3d7dde921e157fddb9c7016805a225c1ec483326b825b3ca5 AS java

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
LABEL org.opencontainers.image.title="ingestd" \
      org.opencontainers.image.description="Kafka change streams into Apache Paimon tables, exactly once" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin ingestd
COPY --from=java /opt/java/openjdk /opt/java/openjdk
COPY --from=build /opt/ingestd /opt/ingestd
ENV JAVA_HOME=/opt/java/openjdk \
    PATH=/opt/ingestd/bin:/opt/java/openjdk/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    SPARK_LOCAL_DIRS=/tmp \
    INGESTD_CLASS_ARCHIVE=/opt/ingestd/classes \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp
# The class archive halves the JVM's startup time; it is valid for this Java and these jars.
RUN /opt/ingestd/bin/python -m ingestd.spark.startup.training
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# For Compose and Docker; Kubernetes uses the probes of the chart.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m \
    CMD ["/opt/ingestd/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/livez', timeout=4)"]
# With the argument `executor`, which Spark on Kubernetes gives, it is an executor.
ENTRYPOINT ["/opt/ingestd/bin/ingestd"]
CMD ["run", "-c", "/etc/ingestd/ingestd.yaml", "--take-over"]
