package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// module is the import path of the repository; releases are published under it.
const module = "github.com/corollary-dev/corollary"

// release says what to build from which sources.
type release struct {
	version   string    // v1.2.3
	date      time.Time // of the commit; every file in an archive has it
	ldflags   string
	image     string
	helm      string // path of the program
	root      string // the repository
	out       string
	platforms []platform

	names     []string          // files written, in order
	checksums map[string]string // by file name
}

func (r *release) setDate(text string) error {
	date, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("-date is not the time of a commit (run make dist inside a git clone): %w", err)
	}
	r.date = date.UTC()
	return nil
}

func (r *release) checkVersion() error {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(r.version, "v")); err != nil ||
		!strings.HasPrefix(r.version, "v") {
		return fmt.Errorf("-version %q is not v and a semantic version: check out a tag such as v1.2.3, or run make dist "+
			"VERSION=v1.2.3",
			r.version)
	}
	return nil
}

// number returns the version for the chart, the image's tag and file names: 1.2.3.
func (r *release) number() string {
	return strings.TrimPrefix(r.version, "v")
}

// build writes the release into its folder.
func (r *release) build(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("removing the previous release: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("creating the folder of the release: %w", err)
	}
	r.checksums = map[string]string{}
	for _, p := range r.platforms {
		if err := r.buildPlatform(ctx, p); err != nil {
			return fmt.Errorf("building for %s/%s: %w", p.os, p.arch, err)
		}
	}
	for _, step := range []func(context.Context) error{r.packageChart, r.writeInstall, r.writeKrew, r.writeChecksums} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// write adds a file to the release.
func (r *release) write(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(r.out, name), data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	r.names = append(r.names, name)
	r.checksums[name] = digest(data)
	fmt.Fprintln(os.Stderr, filepath.Join(r.out, name))
	return nil
}

// writeChecksums lists all files for `sha256sum --check`.
func (r *release) writeChecksums(context.Context) error {
	var text bytes.Buffer
	for _, name := range r.names {
		fmt.Fprintf(&text, "%s  %s\n", r.checksums[name], name)
	}
	return r.write("SHA256SUMS", text.Bytes())
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
