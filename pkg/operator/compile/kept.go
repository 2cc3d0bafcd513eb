package compile

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// warnOfKeptContents warns of a Namespace or CustomResourceDefinition whose deletionPolicy is Delete, and that is kept
// because of an object in it, or of its kind, whose deletionPolicy is Orphan.
func warnOfKeptContents(c *compilation) {
	for i, d := range c.p.downstreams {
		if !d.Config.OutlivesUpstream() {
			continue
		}
		for _, holder := range c.p.downstreams {
			var is string
			switch name := textAt(c.p.Settings, holder, "name"); {
			case name == "" || holder.Config.DeletionPolicy != config.DeletionDelete || holder.OwnsFields():
			case holder.GVK().GroupKind() == schema.GroupKind{Kind: "Namespace"} && textAt(c.p.Settings, d, "namespace") == name:
				is = "is in it"
			case holder.Config.Kind == "CustomResourceDefinition" && d.Kind.GVR.GroupResource().String() == name:
				is = "is of that kind"
			}
			if is != "" {
				c.warn(*c.file.Errorf(fmt.Sprintf("downstreams[%d].deletionPolicy", i), "give both the same deletionPolicy",
					"it is Orphan, and %s of %s is Delete: since this %s, both are kept", holder.Config.Kind, holder.Name, is))
			}
		}
	}
}

// textAt is how a template writes the name or namespace of its object, without spaces and quotes; empty if it does not,
// or in more than one way.
func textAt(s *operator.Settings, d *downstream, key string) (text string) {
	if d.template == nil {
		return ""
	}
	delimiters := s.Config.Delimiters
	hole := regexp.QuoteMeta(delimiters[0]) + ".*?" + regexp.QuoteMeta(delimiters[1])
	value := regexp.MustCompile(`\b` + key + `:\s*("(?:` + hole + `|[^"])*"|(?:` + hole + `|[^,}\s])+)`)
	lines := strings.Split(d.source.text, "\n")
	for _, f := range d.template.Fields {
		if strings.Join(f.Path, ".") != "metadata."+key {
			continue
		}
		m := value.FindStringSubmatch(lines[min(len(lines), max(f.Line, 1))-1])
		if m == nil || text != "" {
			return ""
		}
		text = strings.NewReplacer(" ", "", `"`, "", "'", "").Replace(m[1])
	}
	return text
}

var itemWord = regexp.MustCompile(`(^-?|[(|])item\b`)

// readsItem reports whether a hole in a text of textAt certainly reads the item of forEach: the text has no quotes any
// more, so the word counts only where a literal is unlikely.
func readsItem(s *operator.Settings, text string) bool {
	for _, rest := range strings.Split(text, s.Config.Delimiters[0])[1:] {
		if hole, _, _ := strings.Cut(rest, s.Config.Delimiters[1]); itemWord.MatchString(hole) {
			return true
		}
	}
	return false
}
