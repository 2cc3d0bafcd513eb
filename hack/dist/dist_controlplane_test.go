//go:build controlplane

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/internal/tools"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// host is the platform that the tests build for: they can run its programs, and its packages are compiled already.
var host = platform{runtime.GOOS, runtime.GOARCH}

// newRelease returns a release of the sources in the folder root, with a version that no clone has.
func newRelease(t *testing.T, root string) *release {
	t.Helper()
	return &release{
		version: "v9.8.7-rc.1", date: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), image: "registry.example.com/corollary:9.8.7-rc.1",
		ldflags:   "-s -w -X " + module + "/pkg/cli/command.Version=v9.8.7-rc.1 -X " + module + "/pkg/cli/command.Date=2001-02-03T04:05:06Z",
		platforms: []platform{host}, helm: tools.Path(t, "helm"), root: root, out: filepath.Join(t.TempDir(), "dist"),
	}
}

// built builds a release.
func built(t *testing.T, r *release) *release {
	t.Helper()
	must.Do(t, r.build(t.Context()))
	return r
}

// read returns a file of the release.
func read(t *testing.T, r *release, name string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(r.out, name))).In(t)
	return data
}

// elsewhere copies what a release is made from into another folder.
func elsewhere(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"cmd", "pkg", "charts/corollary"} {
		must.Do(t, os.CopyFS(filepath.Join(root, name), os.DirFS(filepath.Join("../..", name))))
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join("../..", name))
		must.Do(t, errors.Join(err, os.WriteFile(filepath.Join(root, name), data, 0o600)))
	}
	return root
}

// TestBuiltTwiceIsEqual: two builds of the same sources in different folders give the same bytes.
func TestBuiltTwiceIsEqual(t *testing.T) {
	one, two := built(t, newRelease(t, "../..")), built(t, newRelease(t, elsewhere(t)))
	if !slices.Equal(one.names, two.names) || len(one.names) != 6 {
		t.Fatalf("the files are %v and %v", one.names, two.names)
	}
	for _, name := range one.names {
		if !bytes.Equal(read(t, one, name), read(t, two, name)) {
			t.Errorf("%s differs", name)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(string(read(t, one, "SHA256SUMS"))), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		if digest(read(t, one, name)) != sum {
			t.Errorf("%s has another checksum than SHA256SUMS says", name)
		}
	}
	program := unpacked(t, one)
	t.Run("program", func(t *testing.T) { checkProgram(t, program) })
	t.Run("krew", func(t *testing.T) { checkKrew(t, one) })
	t.Run("bill", func(t *testing.T) { checkBill(t, one) })
	t.Run("chart", func(t *testing.T) { checkChart(t, one) })
	t.Run("install", func(t *testing.T) { checkInstall(t, one, program) })
}

// unpack returns the files of a .tar.gz by name, and checks their date.
func unpack(t *testing.T, packed []byte, date time.Time) map[string][]byte {
	t.Helper()
	zipper := must.Get(gzip.NewReader(bytes.NewReader(packed))).In(t)
	files := map[string][]byte{}
	for archive := tar.NewReader(zipper); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(date) || header.Uid != 0 {
			t.Errorf("%s is of %s and of the user %d", header.Name, header.ModTime, header.Uid)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// unpacked returns the path of the program in the host's archive.
func unpacked(t *testing.T, r *release) string {
	t.Helper()
	files := unpack(t, read(t, r, r.archive(host)), r.date)
	if len(files) != 2 || len(files["LICENSE"]) == 0 {
		t.Errorf("the archive has %d files", len(files))
	}
	path := filepath.Join(t.TempDir(), "corollary")
	must.Do(t, os.WriteFile(path, files[host.program()], 0o700))
	return path
}

// checkProgram runs the program: it prints its version, and does not contain the folder of the build.
func checkProgram(t *testing.T, program string) {
	out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	for _, want := range []string{"Version:  v9.8.7-rc.1\n", "Date:     2001-02-03T04:05:06Z\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("it prints %q, %v", out, err)
		}
	}
	here := must.Get(filepath.Abs("../..")).In(t)
	if data, err := os.ReadFile(program); err != nil || bytes.Contains(data, []byte(here+"/")) {
		t.Errorf("it has the path %s in it, or cannot be read: %v", here, err)
	}
}

// checkKrew compares the manifest with the archives that it names.
func checkKrew(t *testing.T, r *release) {
	var manifest struct {
		Spec struct {
			Version, ShortDescription string
			Platforms                 []struct{ URI, SHA256, Bin string }
		}
	}
	must.Do(t, yaml.Unmarshal(read(t, r, "corollary.krew.yaml"), &manifest))
	spec := manifest.Spec
	if spec.Version != r.version || len(spec.ShortDescription) > 50 || len(spec.Platforms) != 1 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	at := spec.Platforms[0]
	if at.SHA256 != digest(read(t, r, filepath.Base(at.URI))) ||
		!strings.HasPrefix(at.URI, "https://"+module+"/releases/download/v9.8.7-rc.1/") {
		t.Errorf("it names %+v", at)
	}
}

// checkBill looks for modules that the program certainly contains.
func checkBill(t *testing.T, r *release) {
	var b bill
	must.Do(t, json.Unmarshal(read(t, r, r.base(host)+".cdx.json"), &b))
	refs := map[string]bool{}
	for _, c := range b.Components {
		if refs[c.Ref] || c.Version == "" {
			t.Errorf("%s is there twice or has no version", c.Ref)
		}
		refs[c.Ref] = true
	}
	for _, want := range []string{"pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"), "pkg:golang/k8s.io/client-go@"} {
		if !slices.ContainsFunc(b.Components, func(c component) bool { return strings.HasPrefix(c.Purl, want) }) {
			t.Errorf("it lacks %s", want)
		}
	}
}

// checkChart reads the chart with Helm: its version and the image's tag are those of the release.
func checkChart(t *testing.T, r *release) {
	unpack(t, read(t, r, r.chartName()), r.date)
	out, err := exec.CommandContext(t.Context(), r.helm, "show", "chart", filepath.Join(r.out, r.chartName())).CombinedOutput()
	for _, want := range []string{"appVersion: 9.8.7-rc.1", "\nversion: 9.8.7-rc.1"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("helm says %q, %v", out, err)
		}
	}
}

// checkInstall applies the manifests to an API server and then follows their comment: all names match.
func checkInstall(t *testing.T, r *release, program string) {
	text := read(t, r, "install.yaml")
	if bytes.Contains(bytes.ToLower(text), []byte("managed-by")) || bytes.Contains(text, []byte("helm.sh")) {
		t.Error("it says that Helm has installed it")
	}
	if !bytes.Contains(text, []byte(`image: "registry.example.com/corollary:9.8.7-rc.1"`)) {
		t.Errorf("it does not run the image of the release:\n%s", text)
	}
	kubeconfig := testkit.Kubeconfig(t)
	kubectl := func(stdin []byte, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), tools.Path(t, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
		command.Stdin = bytes.NewReader(stdin)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const config = "../../examples/configs/webapp/operator.yaml"
	kubectl(text, "apply", "-f", "-")
	kubectl(nil, "create", "configmap", "corollary", "-n", "corollary", "--from-file", config)
	rights, err := exec.CommandContext(t.Context(), program, "generate", "rbac", "-c", config, "-n", "corollary", "--leader-election-id",
		"corollary").Output()
	if err != nil {
		t.Fatal(err)
	}
	kubectl(rights, "apply", "-f", "-")
	for path, want := range map[string]string{
		"{.spec.template.spec.serviceAccountName}":                      "corollary",
		"{.spec.template.spec.volumes[0].configMap.name}":               "corollary",
		"{.spec.template.spec.containers[0].args[1]}":                   "--config=/etc/corollary",
		"{.spec.template.spec.containers[0].args[4]}":                   "--leader-election-id=corollary",
		"{.spec.template.spec.containers[0].volumeMounts[0].mountPath}": "/etc/corollary",
	} {
		if got := kubectl(nil, "get", "deployment", "corollary", "-n", "corollary", "-o", "jsonpath="+path); !strings.Contains(got, want) {
			t.Errorf("%s is %q, not %q", path, got, want)
		}
	}
	as := "--as=system:serviceaccount:" + kubectl(nil, "get", "serviceaccount", "corollary", "-n", "corollary", "-o",
		"jsonpath={.metadata.namespace}:{.metadata.name}")
	kubectl(nil, "auth", "can-i", "update", "leases/corollary", "-n", "corollary", as)
	kubectl(nil, "auth", "can-i", "create", "deployments", as)
	kubectl(nil, "delete", "namespace", "corollary", "--wait=false")
}

// TestZipped: Windows gets the same files as .zip.
func TestZipped(t *testing.T) {
	date := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	packed := must.Get(zipped([]file{{"corollary.exe", 0o755, []byte("program")}}, date)).In(t)
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil || len(archive.File) != 1 || archive.File[0].Name != "corollary.exe" || !archive.File[0].Modified.Equal(date) {
		t.Errorf("the archive is %+v, %v", archive, err)
	}
}
