# One image for every process of a deployment (docker-compose.yml).
#
# Nothing is downloaded that requirements.lock has no hash of, and nothing is compiled: wheels alone. The last stage
# has neither pip nor a compiler, and runs as a user without a name or a shell. Its folders of keys are empty: volumes
# that are mounted there take their owner and mode from them.

FROM python:3.11.14-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all:
WORKDIR /src
COPY pyproject.toml requirements.lock ./
COPY scripts/runtime_lock.py scripts/
RUN python scripts/runtime_lock.py --build > /tmp/build.lock \
 && python scripts/runtime_lock.py server prove > /tmp/runtime.lock \
 && python -m venv /build \
 && /build/bin/python -m pip install --require-hashes -r /tmp/build.lock \
 && python -m venv --without-pip /opt/sla-ledger \
 && /build/bin/python -m pip --python /opt/sla-ledger/bin/python install --require-hashes -r /tmp/runtime.lock
COPY LICENSE NOTICE README.md ./
COPY circuits circuits
COPY contracts/generated contracts/generated
COPY examples examples
COPY migrations migrations
COPY api api
COPY ledger ledger
RUN /build/bin/python -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /tmp/wheel . \
 && /build/bin/python -m pip --python /opt/sla-ledger/bin/python install --no-deps --no-index /tmp/wheel/*.whl \
 && /opt/sla-ledger/bin/python -m compileall -q /opt/sla-ledger/lib

FROM python:3.11.14-slim-bookworm
RUN python -m pip uninstall --yes --quiet pip setuptools wheel \
 && mkdir -m 0700 /var/lib/sla-ledger /var/cache/sla-ledger \
 && cd /var/lib/sla-ledger && mkdir -m 0700 keys keys/log keys/issuer keys/chain keys/collector \
 && chown -R 10001:10001 /var/lib/sla-ledger /var/cache/sla-ledger
COPY --from=build /opt/sla-ledger /opt/sla-ledger
ENV PATH=/opt/sla-ledger/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 10001:10001
CMD ["sla-ledger", "--help"]
