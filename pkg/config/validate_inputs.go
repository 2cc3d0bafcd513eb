package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// parameters checks the names only: a parameter may have any value.
func (v *validator) parameters() {
	for _, name := range sortedKeys(v.Parameters) {
		v.member(display(fieldpath.New("parameters", name)), "params", name)
	}
}

func (v *validator) inputs() {
	first := map[string]int{}
	for i, in := range v.Inputs {
		at := fmt.Sprintf("inputs[%d]", i)
		v.entryName("inputs", i, in.Name, "name the input: templates and CEL read it by this name", first)
		if in.SQL != nil {
			v.inputRows(at, in)
		} else {
			v.object(at, in.APIVersion, in.Kind)
		}
		if in.List != nil {
			v.inputList(at, in)
			continue
		}
		v.inputName(at, in)
		if in.Namespace != "" {
			v.form(inputNamespace, at+".namespace", in.Namespace, in.Namespace)
		}
	}
}

var (
	objectName = syntax{"an object's name", "write small letters, digits, - and ., or give objectName, a CEL expression",
		validation.IsDNS1123Subdomain}
	// An input's namespace is text that the API server is asked for, never what an upstream says: who may write
	// upstreams could read any Secret otherwise.
	inputNamespace = syntax{namespaceName.name,
		"write the namespace as fixed text, small letters, digits and -: an upstream can never choose it", namespaceName.check}
)

// freeNames are the API groups in whose kinds an object's name may hold more than a DNS name.
var freeNames = []string{"rbac.authorization.k8s.io", "certificates.k8s.io"}

// inputRows is about an input that is read from a database: keys about objects of an API server say nothing about it.
func (v *validator) inputRows(at string, in Input) {
	v.rows(at+".sql", in.SQL, "write a SELECT whose rows are read")
	type key struct {
		name  string
		given bool
	}
	keys := []key{{"apiVersion", in.APIVersion != ""}, {"kind", in.Kind != ""}, {"namespace", in.Namespace != ""}}
	if in.List != nil {
		keys = append(keys, key{"list.labelSelector", in.List.LabelSelector != nil}, key{"list.namespaces", in.List.Namespaces != nil})
	}
	for _, k := range keys {
		if k.given {
			v.add(at+"."+k.name, "remove it", "it is not supported with sql: a row has no such thing")
		}
	}
}

// inputName wants exactly one of the two ways to name the object.
func (v *validator) inputName(at string, in Input) {
	const (
		expression = ".objectName"
		fixed      = ".fixedName"
	)
	group, _, _ := strings.Cut(in.APIVersion, "/")
	switch {
	case v.reported(at+expression) || v.reported(at+fixed) || v.reported(at+".list"):
	case in.ObjectName != "" && in.FixedName != "":
		v.add(at+fixed, "keep one of the two", "both objectName and fixedName are given")
	case in.ObjectName == "" && in.FixedName == "":
		v.add(at+expression, "write a CEL expression such as self.spec.settings, or give fixedName, or list for several objects",
			"nothing names the object")
	case in.FixedName == "":
		v.required(at+expression, in.ObjectName, "write a CEL expression such as self.spec.settings, or give fixedName")
	case in.SQL == nil && !slices.Contains(freeNames, group):
		v.form(objectName, at+fixed, in.FixedName, in.FixedName)
	}
}

// maxInputList bounds list.maxItems: all objects of a list are in memory when a template is rendered.
const maxInputList = 10_000

// inputList is about an input that is a list: none of the keys about one object says anything about it.
func (v *validator) inputList(at string, in Input) {
	for _, single := range []struct{ key, value, fix string }{
		{"objectName", in.ObjectName, "leave it out; list.matching chooses among the objects"},
		{"fixedName", in.FixedName, "leave it out; list.labelSelector and list.matching choose among the objects"},
		{"namespace", in.Namespace, "write list.namespaces"},
		{"missing", string(in.Missing), "leave it out; a list without objects is empty"},
	} {
		if single.value != "" {
			v.add(at+"."+single.key, single.fix, "it is about a single object, and the input is a list")
		}
	}
	at += ".list"
	v.selector(at+".labelSelector", in.List.LabelSelector)
	names := in.List.Namespaces
	switch {
	case names == nil:
	case len(names) == 0:
		v.add(at+".namespaces", `leave it out for the upstream's own, or write "*" for all`, "the list is empty, so nothing would be read")
	case slices.Contains(names, AllNamespaces) && len(names) > 1:
		v.add(at+".namespaces", `write only "*"`, "%q is all namespaces, and others are listed", AllNamespaces)
	case names[0] != AllNamespaces:
		v.namespaces(at+".namespaces", names)
	}
	if n := in.List.MaxItems; n != nil && (*n < 1 || *n > maxInputList) {
		v.add(at+".maxItems", fmt.Sprintf("write 1 to %d", maxInputList), "%d is out of range", *n)
	}
}

// AllNamespaces is what list.namespaces of an input has for all namespaces.
const AllNamespaces = "*"

// Everywhere reports whether the list has objects of all namespaces.
func (l *InputList) Everywhere() bool { return slices.Contains(l.Namespaces, AllNamespaces) }

// In returns the namespaces in which the objects of an input can be, if upstreams are watched in those given; none means all.
func (in Input) In(watched []string, upstreamNamespaced bool) []string {
	switch {
	case in.Namespace != "":
		return []string{in.Namespace}
	case in.List != nil && in.List.Everywhere():
		return nil
	case in.List != nil && len(in.List.Namespaces) > 0:
		return in.List.Namespaces
	case !upstreamNamespaced: // of a Namespace, the own one is itself
		return nil
	}
	return watched
}
