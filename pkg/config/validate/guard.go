package validate

import (
	"regexp"

	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
)

var shareRE = regexp.MustCompile(forms.SharePattern)

func checkGuard(v *validator) {
	g := v.Guard
	if g == nil {
		return
	}
	checkShare(v, "guard.maxDeleted", g.MaxDeleted)
	if g.MaxChanged != "" {
		checkShare(v, "guard.maxChanged", g.MaxChanged)
	}
	if *g.Minimum < 0 {
		v.Add("guard.minimum", "write 0 or more", "%d is negative", *g.Minimum)
	}
	checkConfirm(v, "guard.confirm", g.Confirm)
}

// checkConfirm checks where something is written that a person decides; nil for nowhere.
func checkConfirm(v *validator, at string, c *common.Confirm) {
	if c != nil {
		if v.required(at+".namespace", c.Namespace, "name the namespace of the ConfigMap") {
			v.form(forms.NamespaceName, at+".namespace", c.Namespace, c.Namespace)
		}
		if v.required(at+".configMap", c.ConfigMap, "name the ConfigMap") {
			v.form(forms.ConfigMapName, at+".configMap", c.ConfigMap, c.ConfigMap)
		}
		if v.required(at+".key", c.Key, "name the key in its data") {
			v.form(forms.ConfigMapKey, at+".key", c.Key, c.Key)
		}
	}
}

func checkShare(v *validator, path, value string) {
	if !shareRE.MatchString(value) {
		v.Add(path, "write a whole percentage from 0% to 100%", "%q is not a share", document.Clip(value))
	}
}
