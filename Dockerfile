# A static binary and CA certificates, without a shell or a package manager.
# docs/image.md explains how to build it for other platforms, and how to pin the
# builder by its digest.

ARG BUILDER=docker.io/library/golang:1.26

# The builder runs on the platform of this machine and cross-compiles, so no
# emulator is needed.
FROM --platform=${BUILDPLATFORM} ${BUILDER} AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd cmd
COPY pkg pkg
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
ARG REVISION=unknown
ARG DATE=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false -o /out/corollary \
    -ldflags "-s -w -X github.com/corollary-dev/corollary/pkg/cli/command.Version=${VERSION} \
      -X github.com/corollary-dev/corollary/pkg/cli/command.Revision=${REVISION} -X github.com/corollary-dev/corollary/pkg/cli/command.Date=${DATE}" \
    ./cmd/corollary

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY LICENSE /
COPY --from=build /out/corollary /
# A number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 65532:65532
ENTRYPOINT ["/corollary"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="corollary" \
      org.opencontainers.image.description="Runs Kubernetes operators defined in YAML" \
      org.opencontainers.image.source="https://github.com/corollary-dev/corollary" \
      org.opencontainers.image.documentation="https://github.com/corollary-dev/corollary/tree/main/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
