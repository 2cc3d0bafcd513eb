package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The parts of Chart.yaml that a release sets.
var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// chartName returns the file name of the chart's package.
func (r *release) chartName() string {
	return "corollary-" + r.number() + ".tgz"
}

// packageChart packs the chart with the version of the release, like `helm package`, but without the current time.
func (r *release) packageChart(context.Context) error {
	var files []file
	source := os.DirFS(filepath.Join(r.root, "charts/corollary"))
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == ".helmignore" {
			return err
		}
		data, err := fs.ReadFile(source, name)
		if name == "Chart.yaml" {
			data = chartVersion.ReplaceAll(data, []byte("version: "+r.number()))
			data = appVersion.ReplaceAll(data, []byte("appVersion: "+r.number()))
		}
		files = append(files, file{path.Join("corollary", name), 0o644, data})
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	packed, err := tarGz(files, r.date)
	if err != nil {
		return err
	}
	return r.write(r.chartName(), packed)
}

// installValues are the chart's values for the plain manifests.
//
//go:embed install-values.yaml
var installValues []byte

// installHead is the comment at their top.
//
//go:embed install-head.yaml
var installHead []byte

// installed are the templates whose objects do not depend on a config: `corollary generate rbac` prints the others,
// except the ConfigMap, which belongs to the user.
var installed = []string{"deployment", "pdb", "service"}

// ofHelm matches the lines that are only right for an installation by Helm.
var ofHelm = regexp.MustCompile(`(?m)^( +(helm\.sh/chart|app\.kubernetes\.io/managed-by)|# Source): .*\n`)

// writeInstall renders the plain manifests from the chart's package.
func (r *release) writeInstall(ctx context.Context) error {
	repository, tag, ok := cutTag(r.image)
	if !ok {
		return fmt.Errorf("-image %q is not a repository and a tag, such as registry.example.com/corollary:%s",
			r.image, r.number())
	}
	args := []string{"template", "corollary", filepath.Join(r.out, r.chartName()), "--namespace",
		"corollary", "--values", "-",
		"--set-string", "image.repository=" + repository, "--set-string", "image.tag=" + tag}
	for _, name := range installed {
		args = append(args, "--show-only", "templates/"+name+".yaml")
	}
	var text, problems bytes.Buffer
	command := exec.CommandContext(ctx, r.helm, args...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(installValues), &text, &problems
	if err := command.Run(); err != nil {
		return fmt.Errorf("helm template: %w\n%s", err, problems.Bytes())
	}
	return r.write("install.yaml", append(installHead, ofHelm.ReplaceAll(text.Bytes(), nil)...))
}

// cutTag splits the name of an image; a colon before the last slash belongs to a port.
func cutTag(image string) (repository, tag string, ok bool) {
	colon := strings.LastIndex(image, ":")
	if colon < 1 || colon < strings.LastIndex(image, "/") || colon == len(image)-1 {
		return "", "", false
	}
	return image[:colon], image[colon+1:], true
}
