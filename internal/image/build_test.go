//go:build image && linux

package image

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// Values that the test stamps into the image.
const (
	version  = "v9.8.7"
	revision = "0123456789abcdef0123456789abcdef01234567"
	date     = "2001-02-03T04:05:06Z"
)

// standIn is the builder image of the test, used instead of golang, which would need a registry: a shell, CA
// certificates and the machine's own Go.
const standIn = "localhost/golang:stand-in"

// certificates are used instead of those of the builder image.
const certificates = "certificates of the builder image\n"

// imageConfig is the configuration of the image for a runtime.
type imageConfig struct {
	Architecture string `json:"architecture"`
	Config       struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		Labels     map[string]string
	} `json:"config"`
}

// storage is the directory of buildah's images and containers.
type storage string

// newStorage makes a storage for the test, separate from the machine's, which is removed afterwards.
func newStorage(t *testing.T) storage {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // for temporary files and caches of buildah
	return storage(dir)
}

// buildah runs buildah and returns what it prints.
func (s storage) buildah(t *testing.T, args ...string) string {
	t.Helper()
	global := []string{"--root", string(s) + "/root", "--runroot", string(s) + "/run", "--storage-driver", "vfs"}
	command := exec.CommandContext(t.Context(), "buildah", append(global, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // end the build if the test is killed
	if err := command.Run(); err != nil {
		t.Fatalf("buildah %s: %v\n%s%s", args[0], err, stdout.Bytes(), stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String())
}

// makeStandIn makes the builder image.
func (s storage) makeStandIn(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	for _, file := range slices.Concat([]string{"/bin/sh"}, libraries(t, "/bin/sh")) {
		data := must.Get(os.ReadFile(file)).In(t)
		write(t, filepath.Join(root, file), data, 0o755)
	}
	write(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"), []byte(certificates), 0o644)
	must.Do(t, os.Mkdir(filepath.Join(root, "tmp"), 0o755))
	name := s.buildah(t, "from", "scratch")
	s.buildah(t, "copy", "--quiet", name, root, "/")
	for _, env := range []string{
		"PATH=/usr/local/go/bin:/bin", "GOPATH=/go", "GOTOOLCHAIN=local",
		"GOPROXY=off", "GOMODCACHE=/host/mod", "GOCACHE=/host/build",
	} {
		s.buildah(t, "config", "--env", env, name)
	}
	s.buildah(t, "commit", "--quiet", name, standIn)
}

// build builds the Dockerfile for the architecture.
func (s storage) build(t *testing.T, arch string) (image string) {
	t.Helper()
	image = "localhost/corollary:" + arch
	s.buildah(t, "build", "--isolation", "chroot", "--tag", image,
		"--platform", "linux/"+arch, "--build-arg", "BUILDPLATFORM=linux/"+runtime.GOARCH,
		"--build-arg", "BUILDER="+standIn, "--build-arg", "VERSION="+version, "--build-arg", "REVISION="+revision,
		"--build-arg", "DATE="+date,
		"--volume", goEnv(t, "GOROOT")+":/usr/local/go:ro",
		"--volume", goEnv(t, "GOMODCACHE")+":/host/mod:ro",
		"--volume", goEnv(t, "GOCACHE")+":/host/build",
		"../..")
	return image
}

// config returns the configuration of the image.
func (s storage) config(t *testing.T, image string) imageConfig {
	t.Helper()
	var inspected struct{ OCIv1 imageConfig }
	must.Do(t, json.Unmarshal([]byte(s.buildah(t, "inspect", "--type", "image", image)), &inspected))
	return inspected.OCIv1
}

// mount returns a folder with the image's file system.
func (s storage) mount(t *testing.T, image string) string {
	t.Helper()
	return s.buildah(t, "mount", s.buildah(t, "from", image))
}

// libraries returns the files that a dynamic program loads.
func libraries(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	if err != nil {
		t.Fatalf("asking for the libraries of %s: %v", program, err)
	}
	return regexp.MustCompile(`/\S+`).FindAllString(string(out), -1)
}

// goEnv returns a setting of the machine's Go.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// write makes a file and the folders above it.
func write(t *testing.T, path string, data []byte, mode fs.FileMode) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, data, mode))
}
