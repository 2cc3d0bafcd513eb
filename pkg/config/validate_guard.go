package config

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

const sharePattern = `^(100|[0-9]{1,2})%$`

var shareRE = regexp.MustCompile(sharePattern)

func (v *validator) guard() {
	g := v.Guard
	if g == nil {
		return
	}
	if !shareRE.MatchString(g.MaxChanged) {
		v.add("guard.maxChanged", "write a whole percentage from 0% to 100%", "%q is no share", clip(g.MaxChanged))
	}
	if *g.Minimum < 0 {
		v.add("guard.minimum", "write 0 or more", "%d is less than nothing", *g.Minimum)
	}
	if c := g.Confirm; c != nil {
		const at = "guard.confirm"
		if v.required(at+".namespace", c.Namespace, "name the namespace of the ConfigMap") {
			v.form(namespaceName, at+".namespace", c.Namespace, c.Namespace)
		}
		if v.required(at+".configMap", c.ConfigMap, "name the ConfigMap") {
			v.form(configMapName, at+".configMap", c.ConfigMap, c.ConfigMap)
		}
		if v.required(at+".key", c.Key, "name the key in its data") {
			v.form(configMapKey, at+".key", c.Key, c.Key)
		}
	}
}

var (
	configMapName = syntax{"a ConfigMap's name", "write small letters, digits, - and .", validation.IsDNS1123Subdomain}
	configMapKey  = syntax{"a key of a ConfigMap", "write letters, digits, - _ and .", validation.IsConfigMapKey}
)

// place names the key of the ConfigMap that confirms, "" where there is none.
func (g *Guard) place() string {
	if g == nil || g.Confirm == nil || *g.Confirm == (Confirm{}) {
		return ""
	}
	return g.Confirm.Namespace + "/" + g.Confirm.ConfigMap + "/" + g.Confirm.Key
}
