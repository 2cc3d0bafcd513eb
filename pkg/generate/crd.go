package generate

import (
	"bytes"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// Definition is the CustomResourceDefinition of a kind that configs describe by watch.schema.
type Definition struct {
	Kind schema.GroupVersionKind
	// File is the config that describes it.
	File *load.File
	// Object is the definition itself.
	Object *unstructured.Unstructured
	// Notes say what of the configs it does not contain and why, a sentence each.
	Notes []string
}

// Definitions makes the definitions of all kinds that configs describe: with the spec, the status that the operators
// write, and their rules.
func Definitions(list []compile.Compiled) ([]*Definition, error) {
	var files []*load.File
	pipelines := map[*load.File]*compile.Pipeline{}
	for _, c := range list {
		files = append(files, c.File)
		pipelines[c.File] = c.Pipeline
	}
	var all []*Definition
	for _, d := range compile.DescribedKinds(files) {
		var watchers []*compile.Pipeline
		for _, f := range d.Files {
			watchers = append(watchers, pipelines[f])
		}
		made, err := definitionOf(d, watchers)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
}

func definitionOf(d *compile.Described, watchers []*compile.Pipeline) (*Definition, error) {
	needs, _, err := CRDStatusOf(watchers)
	if err != nil {
		return nil, err
	}
	var status crdschema.Node
	ready := ""
	if len(needs) > 0 {
		status, ready = needs[0].status, needs[0].ready
	}
	node := runtime.DeepCopyJSON(d.Definition(status, ready))
	made := &Definition{Kind: d.GVK, File: d.By, Object: &unstructured.Unstructured{Object: node}}
	return made, made.addRules(watchers)
}

// addRules adds the rules under validate that a definition can have.
func (d *Definition) addRules(watchers []*compile.Pipeline) error {
	var whole []*compile.Pipeline
	for _, p := range watchers {
		if len(p.Config.Validate) > 0 && p.SelectsSome() {
			d.Notes = append(d.Notes,
				fmt.Sprintf("the rules of operator %s are left out: its watch selects some objects, and in a "+
					"CustomResourceDefinition "+
					"rules hold for all: use generate policy", p.Name))
			continue
		}
		whole = append(whole, p)
	}
	found, err := CRDValidations(whole)
	if err != nil || len(found) == 0 {
		return err
	}
	v := found[0]
	v.leavesOutCostly = true
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(runtime.DeepCopyJSON(d.Object.Object),
		crd)
	if err != nil {
		return fmt.Errorf("reading the CustomResourceDefinition of %s: %w", d.Kind.Kind, err)
	}
	if _, err := v.Fit(crd); err != nil {
		return err
	}
	d.Notes = append(d.Notes, v.Notes...)
	if len(v.Rules) == 0 {
		return nil
	}
	rules, err := v.nodes()
	if err != nil {
		return err
	}
	versions := d.Object.Object["spec"].(map[string]any)["versions"].([]any)
	root := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	root["x-kubernetes-validations"] = rules
	return nil
}

// nodes are the rules as JSON has them.
func (v *Validations) nodes() ([]any, error) {
	list := make([]any, len(v.Rules))
	for i := range v.Rules {
		rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.Rules[i])
		if err != nil {
			return nil, fmt.Errorf("writing the rules: %w", err)
		}
		list[i] = rule
	}
	return list, nil
}

// Lines are the text of the rules in an entry of spec.versions.
func (v *Validations) Lines() (map[string]any, error) {
	rules, err := v.nodes()
	schema := map[string]any{"x-kubernetes-validations": rules}
	return map[string]any{"schema": map[string]any{"openAPIV3Schema": schema}}, err
}

// Write writes what is to be pasted for one kind.
func (v *Validations) Write(out *bytes.Buffer) error {
	out.WriteString(VersionHead(v.Kind, v.Operators))
	for _, note := range v.Notes {
		fmt.Fprintf(out, "# note: %s\n", note)
	}
	lines, err := v.Lines()
	if err != nil {
		return err
	}
	text, err := yamltext.Of(lines)
	out.WriteString(text)
	return err
}
