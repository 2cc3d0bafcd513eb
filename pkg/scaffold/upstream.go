package scaffold

import (
	"fmt"
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/manifest"
)

// Upstream is the kind that the config is to watch: a new one, or that of a definition which is there. It is made by
// NewKind, DescribedKind or Definition.
type Upstream struct {
	kind       schema.GroupVersionKind
	namespaced bool
	// plural is the resource's name.
	plural string

	// The rest is of a definition that is there.
	known *kinds.Kind // nil for a new kind
	root  *yaml.Node  // the definition

	// schemaFile and schemaText are the schema of a kind that the config is to describe.
	schemaFile, schemaText string
}

// Group is the group of the kind.
func (u *Upstream) Group() string { return u.kind.Group }

var (
	kindName    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	versionName = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
)

// parseKind reads KIND.VERSION.GROUP, as kubectl writes it.
func parseKind(text string) (schema.GroupVersionKind, error) {
	gvk, _ := schema.ParseKindArg(text)
	const like = "write KIND.VERSION.GROUP, such as WebApp.v1.platform.example.com"
	switch {
	case gvk == nil:
		return schema.GroupVersionKind{}, requestf("--kind %q is not a kind: %s", text, like)
	case !kindName.MatchString(gvk.Kind):
		return *gvk, requestf("--kind %q: kind %q is not in CamelCase: %s", text, gvk.Kind, like)
	case !versionName.MatchString(gvk.Version):
		return *gvk, requestf("--kind %q: %q is not a version such as v1 or v1alpha1: %s", text, gvk.Version, like)
	case len(validation.IsDNS1123Subdomain(gvk.Group)) > 0 || !strings.Contains(gvk.Group, "."):
		return *gvk, requestf(
			"--kind %q: %q is not a group for your own kinds: use a domain, in small letters and with a dot: %s",
			text, gvk.Group, like)
	case builtin.OwnsGroup(gvk.Group):
		return *gvk, requestf("--kind %q: group %q belongs to Kubernetes: take a domain of your own", text, gvk.Group)
	}
	return *gvk, nil
}

// NewKind is a kind that is yet to be defined, such as WebApp.v1.platform.example.com. A text that is none is a
// RequestError.
func NewKind(text string, namespaced bool) (*Upstream, error) {
	gvk, err := parseKind(text)
	if err != nil {
		return nil, err
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return &Upstream{kind: gvk, namespaced: namespaced, plural: plural.Resource}, nil
}

// Definition is the kind that the only CustomResourceDefinition in a file defines, in its storage version.
func Definition(path string) (*Upstream, error) {
	documents, err := manifest.Read(path, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	source, err := kinds.Offline(path)
	if err != nil {
		return nil, err
	}
	u, err := definitionIn(documents)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if u.known, err = source.Kind(u.kind); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	u.namespaced, u.plural = u.known.Namespaced, u.known.GVR.Resource
	return u, nil
}

func definitionIn(documents []manifest.Document) (*Upstream, error) {
	var found []*Upstream
	for _, d := range documents {
		_, root, err := readBoth(d)
		if err != nil {
			return nil, err
		}
		if kind := mapEntry(root, "kind"); kind == nil || kind.Value != "CustomResourceDefinition" {
			continue
		}
		spec := mapEntry(root, "spec")
		u := &Upstream{root: root, kind: schema.GroupVersionKind{Group: textAt(spec, "group"),
			Kind: textAt(mapEntry(spec, "names"), "kind")}}
		if versions := mapEntry(spec, "versions"); versions != nil {
			for _, v := range versions.Content {
				if textAt(v, "storage") == "true" {
					u.kind.Version = textAt(v, "name")
				}
			}
		}
		found = append(found, u)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("it holds %d CustomResourceDefinitions: give a file with one", len(found))
	}
	return found[0], nil
}
