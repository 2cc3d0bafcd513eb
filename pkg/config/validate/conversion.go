package validate

import (
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
)

// CheckConversion checks a file of kind Conversion.
func CheckConversion(doc *document.Document, c *conversion.ConversionDocument) config.Errors {
	v := &validator{Problems: document.Problems{Document: doc}}
	if v.required("metadata.name", c.Metadata.Name, "name the conversion") {
		v.form(forms.DNSLabel, "metadata.name", c.Metadata.Name, c.Metadata.Name)
	}
	v.required("for.group", c.For.Group, "set the group of the kind, such as stable.example.com")
	v.required("for.kind", c.For.Kind, "set the kind, such as CronTab")
	v.required("fieldManager", c.FieldManager,
		"set the field manager that writes spec.conversion, such as crontabs.example.com")
	checkConversion(v, "", &c.Conversion)
	return v.Errs
}

// checkConversion checks what can be said without the schemas of the versions.
func checkConversion(v *validator, prefix string, c *conversion.Conversion) {
	v.required(prefix+"hub", c.Hub, "set the version that all others convert through, such as v1")
	if len(c.Spokes) == 0 {
		v.Add(prefix+"spokes", "list the other served versions", "required value is missing")
	}
	if c.Preserve != nil {
		v.required(prefix+"preserve.annotation", c.Preserve.Annotation, "set the name of an annotation")
	}
}
