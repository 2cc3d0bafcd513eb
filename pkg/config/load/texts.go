package load

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// readTexts reads the files that are named instead of texts into these.
func (f *File) readTexts() config.Errors {
	p := &document.Problems{Document: f.Document}
	textOrFile(p, "helpers", "helpers", &f.Helpers, f.HelpersFile)
	for i := range f.Downstreams {
		d := &f.Downstreams[i]
		template(p, fmt.Sprintf("downstreams[%d]", i), &d.Template, d.TemplateFile)
	}
	if b := f.Deletion.Before; b != nil && f.Source == nil { // with which it is reported as not supported
		template(p, "deletion.before", &b.Template, b.TemplateFile)
	}
	return p.Errs
}

// template wants either text or a file, and reads the file into text.
func template(p *document.Problems, at string, text *string, name string) {
	if *text == "" && name == "" && !p.Reported(at+".template") && !p.Reported(at+".templateFile") {
		p.Add(at+".template", "write template: | and the document below it, or name a templateFile", "there is no template")
		return
	}
	textOrFile(p, at+".template", "template", text, name)
}

// textOrFile reads the file, if one is named, into text. Both are too many.
func textOrFile(p *document.Problems, at, key string, text *string, name string) {
	switch {
	case name == "" || p.Reported(at) || p.Reported(at+"File"):
	case *text != "":
		p.Add(at+"File", "keep one of the two", "both %s and %sFile are given", key, key)
	default:
		*text = readTemplate(p, at+"File", p.Place(name))
	}
}

func readTemplate(p *document.Problems, at, path string) string {
	text, err := readFile(path)
	switch {
	case err != nil:
		p.Add(at, "name a file relative to the config file", "%s cannot be read: %s", path, reason(err))
	case strings.TrimSpace(string(text)) == "":
		p.Add(at, "write the template into it", "%s is empty", path)
	case !utf8.Valid(text):
		p.Add(at, "save it as UTF-8", "%s is not UTF-8", path)
	}
	return string(text)
}
