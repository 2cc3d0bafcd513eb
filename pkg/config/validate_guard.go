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
	v.share("guard.maxDeleted", g.MaxDeleted)
	if g.MaxChanged != "" {
		v.share("guard.maxChanged", g.MaxChanged)
	}
	if *g.Minimum < 0 {
		v.add("guard.minimum", "write 0 or more", "%d is negative", *g.Minimum)
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

func (v *validator) share(path, value string) {
	if !shareRE.MatchString(value) {
		v.add(path, "write a whole percentage from 0% to 100%", "%q is not a share", clip(value))
	}
}

var (
	configMapName = syntax{"a ConfigMap's name", "write small letters, digits, - and .", validation.IsDNS1123Subdomain}
	configMapKey  = syntax{"a key of a ConfigMap", "write letters, digits, - _ and .", validation.IsConfigMapKey}
)

// place names the key of the ConfigMap that confirms, "" if there is none.
func (g *Guard) place() string {
	if g == nil || g.Confirm == nil || *g.Confirm == (Confirm{}) {
		return ""
	}
	return g.Confirm.Namespace + "/" + g.Confirm.ConfigMap + "/" + g.Confirm.Key
}
