package cli

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
)

// conventionsName is the file that operators beside it share.
const conventionsName = "conventions.yaml"

// sharing is the shared conventions file of a new config.
type sharing struct {
	// file is its path as the config names it.
	file string
	// found tells that it is there already, with these conventions.
	found bool
	has   config.Conventions
	// domain is that of the keys.
	domain string
}

// findSharing looks for a conventions file in the directory, then in the one above.
func findSharing(dir string) (*sharing, error) {
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
			return &sharing{file: filepath.ToSlash(file), found: true, has: found.Conventions, domain: domainOf(found.Conventions)}, nil
		}
	}
	return &sharing{file: conventionsName}, nil
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

// chooseDomain settles the domain: asked for on the command line, or that of the file found, or what a person answers, or
// without one the group's.
func (s *sharing) chooseDomain(o *initOptions, group string) error {
	switch {
	case o.domain != "":
		s.domain = o.domain
	case s.domain != "":
		return nil
	case !s.found && !readsStdin(o.from) && isTerminal(o.streams.In):
		answer, err := ask(o.streams, group)
		if err != nil {
			return err
		}
		s.domain = answer
	default:
		s.domain = group
		o.note("keys that will stand on objects are in the domain of the group, %s: choose another with --domain", group)
	}
	if problems := validation.IsDNS1123Subdomain(s.domain); len(problems) > 0 {
		return usagef("%q is no domain, such as platform.example.com", s.domain)
	}
	return nil
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ask asks a person for the domain, once.
func ask(streams IO, suggestion string) (string, error) {
	fmt.Fprintf(streams.Err, "Labels and annotations will mark objects in the cluster. The domain of their keys [%s]: ", suggestion)
	line, err := bufio.NewReader(streams.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return suggestion, nil
	}
	return line, nil
}

// text is a new conventions file.
func (s *sharing) text() string {
	return fmt.Sprintf(`# Names that end up in the cluster, shared by the operators whose conventionsFile this is.
apiVersion: %s
kind: %s
conventions:
  hash: {annotation: %[3]s/spec-hash}         # on downstreams: what was asked for when they were last applied
  owner: {annotation: %[3]s/owner}            # on downstreams that cannot bear an owner reference
  pause: {annotation: %[3]s/paused}           # "true" on a custom resource: leave it alone
  reconcile: {annotation: %[3]s/reconcile}    # on a custom resource, a new value: look at it now
`, config.APIVersion, config.ConventionsKind, s.domain)
}

// own are the lines of conventions that a new operator has for itself: what must be its own, and what the file found does
// not have.
func (s *sharing) own(operator string, needsFinalizer bool) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, "  "+format+"\n", args...) }
	line("fieldManager: %s", operator)
	if !s.found || !hasConstant(s.has.Labels) {
		line("labels: {%s/managed-by: %s}", s.domain, operator)
	}
	if s.found && s.has.Hash.Annotation == "" && s.has.Hash.Label == "" {
		line("hash: {annotation: %s/spec-hash}", s.domain)
	}
	if s.found && s.has.Owner.Annotation == "" && needsFinalizer {
		line("owner: {annotation: %s/owner}", s.domain)
	}
	if needsFinalizer {
		line("finalizer: %s/%s", s.domain, operator)
	}
	return strings.TrimRight(out.String(), "\n")
}

// marks are the labels and annotations that the conventions put on each object.
func (s *sharing) marks() (labels, annotations []string) {
	labels = append(slices.Collect(maps.Keys(s.has.Labels)), s.has.Hash.Label, s.domain+"/managed-by")
	annotations = append(slices.Collect(maps.Keys(s.has.Annotations)), s.has.Hash.Annotation, s.has.Owner.Annotation, s.domain+"/spec-hash", s.domain+"/owner")
	return labels, annotations
}

// hasConstant tells that some label has a value which is no template.
func hasConstant(labels map[string]string) bool {
	for _, value := range labels {
		if !strings.Contains(value, "{{") {
			return true
		}
	}
	return false
}
