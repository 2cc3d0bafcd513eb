package validate

import (
	"fmt"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
)

// CheckOperator checks an operator. unread says that conventions may be in another file that could not be read: then a
// missing key is not an error.
func CheckOperator(doc *document.Document, op *config.Operator, unread bool) config.Errors {
	v := &validator{Problems: document.Problems{Document: doc}, Operator: op, unread: unread}
	checkRoot(v)
	if v.Source != nil {
		checkSource(v)
	} else {
		checkWatch(v)
	}
	checkParameters(v)
	checkVariables(v)
	checkInputs(v)
	checkRules(v)
	checkDownstreams(v)
	checkConventions(v)
	checkNeeds(v)
	if v.Source == nil { // which reports deletion as not supported
		checkDeletion(v)
	}
	checkStatus(v)
	checkGuard(v)
	checkRollout(v)
	if v.Conversion != nil {
		checkConversion(v, "conversion.", v.Conversion)
	}
	checkRequires(v)
	return v.Errs
}

func checkRoot(v *validator) {
	if v.required("metadata.name", v.Metadata.Name, "name the operator") {
		v.form(forms.DNSLabel, "metadata.name", v.Metadata.Name, v.Metadata.Name)
	}
	checkServiceAccount(v)
	if v.Activation != "" && v.Activation != config.EveryCluster {
		v.form(forms.DNSLabel, "activation", v.Activation, v.Activation)
	}
	checkDelimiters(v)
	const second, minute = common.Duration(time.Second), common.Duration(time.Minute)
	if v.Retry.MinDelay < second {
		v.Add("retry.minDelay", "write at least 1s", "%s is too short, a failure must wait", v.Retry.MinDelay)
	}
	if v.Retry.MaxDelay < v.Retry.MinDelay && v.Retry.MinDelay >= second {
		v.Add("retry.maxDelay", "write at least "+v.Retry.MinDelay.String(),
			"%s is less than minDelay, which is %s", v.Retry.MaxDelay,
			v.Retry.MinDelay)
	}
	if v.ResyncPeriod != 0 && v.ResyncPeriod < minute {
		v.Add("resyncPeriod", "write at least 1m, or 0s for never", "%s is too short", v.ResyncPeriod)
	}
}

func checkServiceAccount(v *validator) {
	const at = "serviceAccount"
	account := v.ServiceAccount
	if account == nil {
		return
	}
	if v.required(at+".namespace", account.Namespace, "name the namespace of the ServiceAccount") {
		v.form(forms.NamespaceName, at+".namespace", account.Namespace, account.Namespace)
	}
	if v.required(at+".name", account.Name, "name the ServiceAccount") {
		v.form(forms.ServiceAccountName, at+".name", account.Name, account.Name)
	}
}

func checkDelimiters(v *validator) {
	const fix = `write two different texts, such as ["[[", "]]"]`
	if v.Reported("delimiters") {
		return
	}
	d := v.Delimiters
	switch {
	case len(d) != 2:
		v.Add("delimiters", fix, "found %d delimiters, wanted the left and the right one", len(d))
	case d[0] == d[1]:
		v.Add("delimiters", fix, "the delimiters are the same: %q", d[0])
	default:
		for i, s := range d {
			if s == "" || strings.ContainsAny(s, " \t\r\n") {
				v.Add(fmt.Sprintf("delimiters[%d]", i), fix, "%q is empty or has white space", s)
			}
		}
	}
}

func checkWatch(v *validator) {
	checkObject(v, "watch", v.Watch.APIVersion, v.Watch.Kind)
	if v.Watch.Namespaces != nil && len(v.Watch.Namespaces) == 0 {
		v.Add("watch.namespaces", "leave it out to watch all namespaces", "the list is empty, so nothing would be watched")
	}
	checkNamespaces(v, "watch.namespaces", v.Watch.Namespaces)
	checkSelector(v, "watch.labelSelector", v.Watch.LabelSelector)
	checkSelector(v, "watch.namespaceSelector", v.Watch.NamespaceSelector)
	checkMatchConditions(v)
	checkKindSchema(v)
	checkAcknowledged(v)
}

func checkMatchConditions(v *validator) {
	first := map[string]int{}
	for i, c := range v.Watch.MatchConditions {
		at := fmt.Sprintf("watch.matchConditions[%d]", i)
		v.required(at+".expression", c.Expression, "write a CEL expression that is true for an upstream")
		if !v.required(at+".name", c.Name, "name the condition") {
			continue
		}
		if j, twice := first[c.Name]; twice {
			v.Add(at+".name", "rename one of them", "%q is already the name of item %d", c.Name, j)
		}
		first[c.Name] = i
		v.form(forms.QualifiedName, at+".name", c.Name, c.Name)
	}
}

func checkVariables(v *validator) {
	first := map[string]int{}
	for i, one := range v.Variables {
		at := fmt.Sprintf("variables[%d]", i)
		v.required(at+".expression", one.Expression, "write a CEL expression")
		checkEntryName(v, "variables", i, one.Name, "name the variable: templates and CEL read it by this name", first)
	}
}

func checkRules(v *validator) {
	for i, r := range v.Validate {
		at := fmt.Sprintf("validate[%d]", i)
		v.required(at+".rule", r.Rule, "write a CEL expression that is true for a valid upstream")
		if r.FieldPath != "" {
			checkFieldPath(v, at+".fieldPath", r.FieldPath)
		}
	}
}
