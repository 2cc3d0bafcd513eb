package load

import (
	"regexp"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
)

// deletionOrder gives each downstream those that it comes after, or that its texts name. The texts may have errors, so
// they are only searched. What only a comment names counts, too, unless it would close a circle, in which each
// downstream waits for the others.
func (f *File) deletionOrder() [][]config.After {
	order, texts := make([][]config.After, len(f.Downstreams)), make([]string, len(f.Downstreams))
	for i := range f.Downstreams {
		order[i], texts[i] = slices.Clone(f.Downstreams[i].After), f.textsOf(&f.Downstreams[i])
	}
	add := func(text func(i int) string) {
		for i := range order {
			for j, other := range f.Downstreams {
				if mentions("downstreams?", other.Name, text(i)) && !comesAfter(f, order, j, i) {
					order[i] = append(order[i], config.After{Name: other.Name, Until: config.AfterCreated})
				}
			}
		}
	}
	add(func(i int) string { return comments.ReplaceAllString(texts[i], "") })
	add(func(i int) string { return texts[i] })
	return order
}

// comments matches comments of templates, YAML and CEL, and perhaps more.
var comments = regexp.MustCompile(`(?s:/\*.*?\*/)|(?m:(^|\s)#.*$)|(?m://.*$)`)

// mentions reports whether a text names something, as in variables.NAME, variables[?'NAME'] or variable "NAME".
func mentions(word, name, text string) bool {
	name = regexp.QuoteMeta(name)
	return regexp.MustCompile("\\b" + word + "(\\.\\??" + name + "\\b|\\W{1,4}[\"'`]" + name + "[\"'`])").MatchString(text)
}

// comesAfter reports whether downstream i is j, or comes after it in an order, perhaps with others between them.
func comesAfter(f *File, order [][]config.After, i, j int) bool {
	list := []int{i}
	for n := 0; n < len(list); n++ {
		for _, a := range order[list[n]] {
			k := slices.IndexFunc(f.Downstreams, func(d config.Downstream) bool { return d.Name == a.Name })
			if k >= 0 && !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
	}
	return slices.Contains(list, j)
}

var define = regexp.MustCompile("\\b(define|block)\\s+[\"`]([^\"`]+)[\"`]")

// textsOf is what may name what a downstream reads: its own texts, and the variables and helpers that these use.
func (f *File) textsOf(d *config.Downstream) string {
	text := d.Template + "\n" + d.When
	if d.ForEach != nil {
		text += "\n" + d.ForEach.Items
	}
	unused := map[[2]string]string{}
	for _, v := range f.Variables {
		unused[[2]string{"variables?", v.Name}] = v.Expression
	}
	starts := define.FindAllStringSubmatchIndex(f.Helpers, -1)
	for n, at := range starts {
		end := len(f.Helpers)
		if n+1 < len(starts) {
			end = starts[n+1][0]
		}
		unused[[2]string{"(template|include|block)", f.Helpers[at[4]:at[5]]}] = f.Helpers[at[1]:end]
	}
	for found := true; found; {
		found = false
		for key, more := range unused {
			if mentions(key[0], key[1], text) {
				text, found = text+"\n"+more, true
				delete(unused, key)
			}
		}
	}
	return text
}
