package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// platform is an operating system and an architecture.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// program returns the file name of the program.
func (p platform) program() string {
	if p.os == "windows" {
		return "corollary.exe"
	}
	return "corollary"
}

// base returns the prefix of the names of a platform's files.
func (r *release) base(p platform) string {
	return fmt.Sprintf("corollary_%s_%s_%s", r.number(), p.os, p.arch)
}

// archive returns the file name of a platform's archive.
func (r *release) archive(p platform) string {
	if p.os == "windows" {
		return r.base(p) + ".zip"
	}
	return r.base(p) + ".tar.gz"
}

// buildPlatform writes the archive and the bill of materials of a platform.
func (r *release) buildPlatform(ctx context.Context, p platform) error {
	program, err := r.compile(ctx, p)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return fmt.Errorf("reading the license: %w", err)
	}
	files := []file{{p.program(), 0o755, program}, {"LICENSE", 0o644, license}}
	pack := tarGz
	if p.os == "windows" {
		pack = zipped
	}
	packed, err := pack(files, r.date)
	if err != nil {
		return err
	}
	if err := r.write(r.archive(p), packed); err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("reading what the program is made from: %w", err)
	}
	materials, err := r.bill(info, digest(program))
	if err != nil {
		return err
	}
	return r.write(r.base(p)+".cdx.json", materials)
}

// compile builds the program for a platform, without traces of the build machine.
func (r *release) compile(ctx context.Context, p platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "dist-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the program: %w", err)
	}
	defer os.RemoveAll(dir)
	output := filepath.Join(dir, p.program())
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", r.ldflags,
		"-o", output, "./cmd/corollary")
	command.Dir = r.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOWORK=off", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	return os.ReadFile(output)
}
