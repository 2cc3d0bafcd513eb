package scaffold

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
)

// conventionsName is the file that operators beside it share.
const conventionsName = "conventions.yaml"

// Conventions is the shared conventions file of a new config. It is made by FindConventions.
type Conventions struct {
	// File is its path as the config names it.
	File string
	// Found reports whether it is there already.
	Found bool
	// Domain is that of the keys; empty if the file found has none, and before UseDomain.
	Domain string
	has    config.Conventions
}

// FindConventions looks for a conventions file in the directory, then in the one above.
func FindConventions(dir string) (*Conventions, error) {
	for _, file := range []string{conventionsName, filepath.Join("..", conventionsName)} {
		path := filepath.Join(dir, file)
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the shared conventions: %w", err)
		}
		var found struct {
			APIVersion, Kind string
			Conventions      config.Conventions
		}
		if err := yaml.Unmarshal(data, &found); err != nil {
			return nil, fmt.Errorf("reading the shared conventions: %s: %s", path, oneLine(err.Error()))
		}
		if found.APIVersion == config.APIVersion && found.Kind == config.ConventionsKind {
			return &Conventions{File: filepath.ToSlash(file), Found: true, Domain: domainOf(found.Conventions),
				has: found.Conventions}, nil
		}
	}
	return &Conventions{File: conventionsName}, nil
}

// domainOf is the domain of the keys in conventions, empty where none has one.
func domainOf(c config.Conventions) string {
	keys := []string{c.Hash.Annotation, c.Hash.Label, c.Owner.Annotation}
	if c.Pause != nil {
		keys = append(keys, c.Pause.Annotation)
	}
	for key := range c.Labels {
		keys = append(keys, key)
	}
	for _, key := range keys {
		if domain, _, ok := strings.Cut(key, "/"); ok {
			return domain
		}
	}
	return ""
}

// UseDomain settles the domain of the keys. One that is none is a *RequestError.
func (s *Conventions) UseDomain(domain string) error {
	if problems := validation.IsDNS1123Subdomain(domain); len(problems) > 0 {
		return requestf("%q is not a domain such as platform.example.com", domain)
	}
	s.Domain = domain
	return nil
}

// text is a new conventions file.
func (s *Conventions) text() string {
	return fmt.Sprintf(`# Names that end up in the cluster, shared by the operators whose conventionsFile this is.
apiVersion: %s
kind: %s
conventions:
  hash: {annotation: %[3]s/spec-hash}             # on downstreams: what was asked for when they were last applied
  downstreamName: {annotation: %[3]s/downstream}  # on downstreams: which one of the config they are
  owner: {annotation: %[3]s/owner}                # on downstreams that cannot bear an owner reference
  pause: {annotation: %[3]s/paused}               # "true" on a custom resource: leave it alone
  reconcile: {annotation: %[3]s/reconcile}        # on a custom resource, a new value: look at it now
`, config.APIVersion, config.ConventionsKind, s.Domain)
}

// own are the lines of conventions that a new operator has for itself: what must be its own, and what the file found
// does not have.
func (s *Conventions) own(name string, finalizes bool) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, "  "+format+"\n", args...) }
	line("fieldManager: %s", name)
	if !s.Found || !hasConstant(s.has.Labels) {
		line("labels: {%s/managed-by: %s}", s.Domain, name)
	}
	if s.Found && s.has.Hash.Annotation == "" && s.has.Hash.Label == "" {
		line("hash: {annotation: %s/spec-hash}", s.Domain)
	}
	if s.Found && s.has.DownstreamName == nil {
		line("downstreamName: {annotation: %s/downstream}", s.Domain)
	}
	if s.Found && s.has.Owner.Annotation == "" && finalizes {
		line("owner: {annotation: %s/owner}", s.Domain)
	}
	line("finalizer: %s/%s", s.Domain, name)
	return strings.TrimRight(out.String(), "\n")
}

// marks are the labels and annotations that the conventions put on each object.
func (s *Conventions) marks() (labels, annotations []string) {
	labels = append(slices.Collect(maps.Keys(s.has.Labels)), s.has.Hash.Label, s.Domain+"/managed-by")
	annotations = append(slices.Collect(maps.Keys(s.has.Annotations)), s.has.Hash.Annotation,
		s.has.Owner.Annotation, s.Domain+"/spec-hash",
		s.Domain+"/owner", s.Domain+"/downstream")
	if s.has.DownstreamName != nil {
		annotations = append(annotations, s.has.DownstreamName.Annotation)
	}
	return labels, annotations
}

// hasConstant reports whether some label has a value which is not a template.
func hasConstant(labels map[string]string) bool {
	for _, value := range labels {
		if !strings.Contains(value, "{{") {
			return true
		}
	}
	return false
}
