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
		v.object(at, in.APIVersion, in.Kind)
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

// inputName wants exactly one of the two ways to name the object.
func (v *validator) inputName(at string, in Input) {
	const (
		expression = ".objectName"
		fixed      = ".fixedName"
	)
	group, _, _ := strings.Cut(in.APIVersion, "/")
	switch {
	case v.reported(at+expression) || v.reported(at+fixed):
	case in.ObjectName != "" && in.FixedName != "":
		v.add(at+fixed, "keep one of the two", "both objectName and fixedName are given")
	case in.ObjectName == "" && in.FixedName == "":
		v.add(at+expression, "write a CEL expression such as self.spec.settings, or give fixedName", "nothing names the object")
	case in.FixedName == "":
		v.required(at+expression, in.ObjectName, "write a CEL expression such as self.spec.settings, or give fixedName")
	case !slices.Contains(freeNames, group):
		v.form(objectName, at+fixed, in.FixedName, in.FixedName)
	}
}
