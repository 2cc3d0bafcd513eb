package scaffold

import (
	"errors"
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/simpleschema"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// DescribedKind is a kind that is yet to be defined, whose fields a file describes as watch.schema of a config does. A
// text that is not a kind is a RequestError.
func DescribedKind(text, path string) (*Upstream, error) {
	u, err := NewKind(text, true)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	described := config.KindSchema{}
	if err := yaml.UnmarshalStrict(content, &described); err != nil {
		return nil, fmt.Errorf(
			"reading the schema in %s: it should have the keys of watch.schema: spec, types, scope, plural, shortNames: %w",
			path,
			err,
		)
	}
	spec, problems := simpleschema.Parse(described.Spec, described.Types)
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %s: %s: %s", path, strings.TrimPrefix(p.Path.String(), "."), p.Text, p.Fix))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	u.schemaFile, u.schemaText, u.namespaced = path, string(content), described.Scope != config.ScopeCluster
	if described.Plural != "" {
		u.plural = described.Plural
	}
	names := crdschema.Names{Kind: u.kind, Plural: u.plural, Namespaced: u.namespaced}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	definition := crdschema.Definition(names, spec, crdschema.Status(recorded, false), firstConditions.Ready)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition, crd); err != nil {
		return nil, fmt.Errorf("reading the schema in %s: %w", path, err)
	}
	found, err := kinds.Defined(crd)
	if err != nil {
		return nil, fmt.Errorf("reading the schema in %s: %w", path, err)
	}
	u.known = found[0]
	return u, nil
}

// describesAll checks that the schema has the fields that holes name. There is no definition to write.
func (u *Upstream) describesAll(fields *branch) (string, error) {
	if absent := u.absent(fields, fieldpath.New("spec")); absent != nil {
		return "", requestf(
			"a hole names a field that %s does not have: add it there: %s",
			u.schemaFile,
			strings.Join(namesIn(absent, ""), ", "),
		)
	}
	return "", nil
}

// namesIn are the paths of the fields of a schema.
func namesIn(s crdschema.Node, at string) []string {
	properties, ok := s["properties"].(crdschema.Node)
	if !ok {
		return []string{at}
	}
	var names []string
	for _, name := range yamltext.Keys(properties) {
		names = append(names, namesIn(properties[name].(crdschema.Node), strings.TrimPrefix(at+"."+name, "."))...)
	}
	return names
}
