package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// checkParameters checks the names only: a parameter may have any value.
func checkParameters(v *validator) {
	for _, name := range document.SortedKeys(v.Parameters) {
		checkMember(v, document.Display(fieldpath.New("parameters", name)), "params", name)
	}
}

func checkInputs(v *validator) {
	first := map[string]int{}
	for i, in := range v.Inputs {
		at := fmt.Sprintf("inputs[%d]", i)
		checkEntryName(v, "inputs", i, in.Name, "name the input: templates and CEL read it by this name", first)
		if in.SQL != nil {
			checkInputRows(v, at, in)
		} else {
			checkObject(v, at, in.APIVersion, in.Kind)
		}
		if in.List != nil {
			checkInputList(v, at, in)
			continue
		}
		checkInputName(v, at, in)
		if in.Namespace != "" {
			v.form(forms.InputNamespace, at+".namespace", in.Namespace, in.Namespace)
		}
	}
}

// freeNames are the API groups in whose kinds an object's name may hold more than a DNS name.
var freeNames = []string{"rbac.authorization.k8s.io", "certificates.k8s.io"}

// checkInputRows is about an input that is read from a database: keys about objects of an API server say nothing about
// it.
func checkInputRows(v *validator, at string, in config.Input) {
	checkRows(v, at+".sql", in.SQL, "write a SELECT whose rows are read")
	type key struct {
		name  string
		given bool
	}
	keys := []key{{"apiVersion", in.APIVersion != ""}, {"kind", in.Kind != ""}, {"namespace", in.Namespace != ""}}
	if in.List != nil {
		keys = append(keys, key{"list.labelSelector", in.List.LabelSelector != nil},
			key{"list.namespaces", in.List.Namespaces != nil})
	}
	for _, k := range keys {
		if k.given {
			v.Add(at+"."+k.name, "remove it", "it is not supported with sql: a row has no such thing")
		}
	}
}

// checkInputName wants exactly one of the two ways to name the object.
func checkInputName(v *validator, at string, in config.Input) {
	const (
		expression = ".objectName"
		fixed      = ".fixedName"
	)
	group, _, _ := strings.Cut(in.APIVersion, "/")
	switch {
	case v.Reported(at+expression) || v.Reported(at+fixed) || v.Reported(at+".list"):
	case in.ObjectName != "" && in.FixedName != "":
		v.Add(at+fixed, "keep one of the two", "both objectName and fixedName are given")
	case in.ObjectName == "" && in.FixedName == "":
		v.Add(at+expression, "write a CEL expression such as self.spec.settings, or give fixedName, or list for several "+
			"objects",
			"nothing names the object")
	case in.FixedName == "":
		v.required(at+expression, in.ObjectName, "write a CEL expression such as self.spec.settings, or give fixedName")
	case in.SQL == nil && !slices.Contains(freeNames, group):
		v.form(forms.ObjectName, at+fixed, in.FixedName, in.FixedName)
	}
}

// maxInputList bounds list.maxItems: all objects of a list are in memory when a template is rendered.
const maxInputList = 10_000

// checkInputList is about an input that is a list: none of the keys about one object says anything about it.
func checkInputList(v *validator, at string, in config.Input) {
	for _, single := range []struct{ key, value, fix string }{
		{"objectName", in.ObjectName, "leave it out; list.matching chooses among the objects"},
		{"fixedName", in.FixedName, "leave it out; list.labelSelector and list.matching choose among the objects"},
		{"namespace", in.Namespace, "write list.namespaces"},
		{"missing", string(in.Missing), "leave it out; a list without objects is empty"},
	} {
		if single.value != "" {
			v.Add(at+"."+single.key, single.fix, "it is about a single object, and the input is a list")
		}
	}
	at += ".list"
	checkSelector(v, at+".labelSelector", in.List.LabelSelector)
	names := in.List.Namespaces
	switch {
	case names == nil:
	case len(names) == 0:
		v.Add(at+".namespaces", `leave it out for the upstream's own, or write "*" for all`, "the list is empty, so nothing would be read")
	case slices.Contains(names, config.AllNamespaces) && len(names) > 1:
		v.Add(at+".namespaces", `write only "*"`, "%q is all namespaces, and others are listed", config.AllNamespaces)
	case names[0] != config.AllNamespaces:
		checkNamespaces(v, at+".namespaces", names)
	}
	if n := in.List.MaxItems; n != nil && (*n < 1 || *n > maxInputList) {
		v.Add(at+".maxItems", fmt.Sprintf("write 1 to %d", maxInputList), "%d is out of range", *n)
	}
}
