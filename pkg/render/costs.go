package render

import (
	"math/bits"
	"reflect"
	"strings"
	"unicode/utf8"
)

// cost is what calling a function takes from the Budget. Each function of a template needs one; a test checks this.
type cost struct {
	// bounded means that the step for the call is enough: the function itself takes from the Budget, or its cost does not
	// depend on the size of its arguments.
	bounded bool
	// perByte is the number of bytes that it makes for each byte of its texts.
	perByte int
	// of takes any other cost.
	of func(b *Budget, args []reflect.Value) error
}

var (
	constant = cost{bounded: true}
	own      = cost{bounded: true}
	text1    = cost{perByte: 1}
)

func text(perByte int) cost { return cost{perByte: perByte} }

func sized(of func(b *Budget, args []reflect.Value) error) cost { return cost{of: of} }

// costs are the costs of the functions, by name.
var costs = func() map[string]cost {
	out := map[string]cost{}
	add := func(c cost, names ...string) {
		for _, name := range names {
			out[name] = c
		}
	}
	// functions of text/template
	add(constant, "hello", "and", "or", "not", "lt", "le", "gt", "ge", "len", "index")
	add(own, "print", "printf", "println", "html", "js", "urlquery", "eq", "ne")
	// functions of the execution
	add(constant, "param", "variable", "input", "downstream", "item", fnEmit, fnTick, fnEnter, fnLeave)
	add(own, "include", fnIndent, fnNindent, fnTrim, fnOver)

	add(constant, "trunc", "hasPrefix", "hasSuffix", "trim", "trimSuffix", "trimPrefix", "substr", "plural")
	add(text(2), "abbrev", "abbrevboth", "lower", "upper", "title", "untitle", "initials")
	add(text(3), "nospace", "swapcase", "snakecase", "camelcase", "kebabcase")
	add(text1, "contains", "sha1sum", "sha256sum", "sha512sum", "adler32sum", "b64dec", "b32dec", "isAbs", "osIsAbs", "ext", "osExt",
		"base", "osBase")
	add(text(2), "dir", "clean", "osDir", "osClean", "b64enc")
	add(text(3), "b32enc", "regexQuoteMeta", "decryptAES")
	add(text(4), "urlParse")
	add(sized(cutsetCost), "trimAll", "trimall")
	add(sized(wrapCost), "wrap", "wrapWith")
	add(sized(splitCost), "split", "splitList", "splitn")
	add(own, "cat", "toString", "quote", "squote", "indent", "nindent", "repeat", "replace", "join", "toStrings", "sortAlpha")
	add(own, "regexMatch", "mustRegexMatch", "regexFind", "mustRegexFind", "regexFindAll", "mustRegexFindAll", "regexSplit", "mustRegexSplit",
		"regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral")

	add(sized(numberCost), "atoi", "int", "int64", "float64", "toDecimal", "duration", "add", "add1", "sub", "div", "mod", "mul",
		"addf", "add1f", "subf", "divf", "mulf", "biggest", "max", "min", "maxf", "minf", "ceil", "floor", "round")
	add(own, "until", "untilStep", "seq", "derivePassword")

	add(constant, "default", "coalesce", "required", "fail", "empty", "all", "any", "ternary",
		"typeOf", "typeIs", "typeIsLike", "kindOf", "kindIs", "get", "hasKey", "pluck", "dig", "list", "tuple",
		"first", "mustFirst", "last", "mustLast", "slice", "mustSlice")
	add(own, "toJson", "mustToJson", "toRawJson", "mustToRawJson", "toPrettyJson", "mustToPrettyJson", "toYaml", "fromJson", "mustFromJson",
		"deepCopy", "mustDeepCopy", "deepEqual", "has", "mustHas", "uniq", "mustUniq", "without", "mustWithout", "dict", "keys", "values",
		"set", "unset", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite",
		"append", "mustAppend", "push", "mustPush", "prepend", "mustPrepend", "concat", "chunk", "mustChunk")
	add(sized(itemsCost(48)), "rest", "mustRest", "initial", "mustInitial", "reverse", "mustReverse", "compact", "mustCompact")
	add(sized(itemsCost(96)), "pick", "omit")
	add(sized(urlJoinCost), "urlJoin")
	add(sized(versionCost), "semver", "semverCompare")
	return out
}()

// withCost returns a function that takes its cost from the run's Budget and then calls f.
func withCost(r *run, f any, c cost) any {
	if c.bounded {
		return f
	}
	if c.of == nil {
		if out := withTextCost(r, f, c.perByte); out != nil {
			return out
		}
		c.of = func(b *Budget, args []reflect.Value) error { return b.textCost(times(c.perByte, textLength(args))) }
	}
	called := reflect.ValueOf(f)
	return reflect.MakeFunc(called.Type(), func(args []reflect.Value) []reflect.Value {
		must(c.of(r.Budget, args))
		if called.Type().IsVariadic() {
			return called.CallSlice(args)
		}
		return called.Call(args)
	}).Interface()
}

// withTextCost is charged without reflection, for the types that most text functions have.
func withTextCost(r *run, f any, perByte int) any {
	switch f := f.(type) {
	case func(string) string:
		return func(a string) string {
			must(r.textCost(times(perByte, len(a))))
			return f(a)
		}
	case func(string) (string, error):
		return func(a string) (string, error) {
			must(r.textCost(times(perByte, len(a))))
			return f(a)
		}
	case func(int, string) string:
		return func(n int, a string) string {
			must(r.textCost(times(perByte, len(a))))
			return f(n, a)
		}
	case func(string, string) bool:
		return func(a, b string) bool {
			must(r.textCost(times(perByte, len(a)+len(b))))
			return f(a, b)
		}
	}
	return nil
}

// textLength returns the total length of the texts in the arguments, including a variadic one.
func textLength(args []reflect.Value) int {
	n := 0
	for _, arg := range args {
		if arg.Kind() == reflect.Interface {
			arg = arg.Elem()
		}
		switch arg.Kind() {
		case reflect.String:
			n = plus(n, arg.Len())
		case reflect.Slice:
			for i := range arg.Len() {
				n = plus(n, textLength([]reflect.Value{arg.Index(i)}))
			}
		}
	}
	return n
}

// cutsetCost: each character of the text may be compared with each one of the cutset.
func cutsetCost(b *Budget, args []reflect.Value) error {
	cutset, text := args[0].String(), args[1].String()
	per := 1
	if !ascii(cutset) {
		per = len(cutset)
	}
	return b.work(times(len(text), per)>>8 + len(cutset)>>8)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// wrapCost: of every two lines of the result, at least one has the maximum length.
func wrapCost(b *Budget, args []reflect.Value) error {
	text, sep := args[len(args)-1].Len(), 1
	if len(args) == 3 {
		sep = max(1, args[1].Len())
	}
	lines := 2*(text/int(max(1, min(args[0].Int(), 1<<40)))) + 2
	return b.textCost(times(3, plus(text, times(lines, sep))))
}

// splitCost: each piece becomes an item of a list, or an entry of a map.
func splitCost(b *Budget, args []reflect.Value) error {
	sep, text := args[0].String(), args[len(args)-1].String()
	pieces := strings.Count(text, sep) + 1
	if len(args) == 3 {
		if n := args[1].Int(); n >= 0 && n < int64(pieces) {
			pieces = int(n)
		}
	}
	if err := b.work(pieces/4 + len(text)>>10); err != nil {
		return err
	}
	return b.spend(times(pieces, 160))
}

// numberCost refuses a map or list: the library would print it into an error that is discarded.
func numberCost(b *Budget, args []reflect.Value) error {
	for _, arg := range args {
		if arg.Kind() == reflect.Interface && isStructure(arg.Interface()) {
			return problemf("", "%s is not a number", typeName(arg.Interface()))
		}
		if arg.Kind() != reflect.Slice {
			continue
		}
		for i := range arg.Len() {
			if item := arg.Index(i).Interface(); isStructure(item) {
				return problemf("", "%s is not a number", typeName(item))
			}
		}
	}
	return b.textCost(times(8, textLength(args)))
}

// itemsCost returns the cost of functions that copy the items of their maps and lists.
func itemsCost(perItem int) func(*Budget, []reflect.Value) error {
	return func(b *Budget, args []reflect.Value) error {
		n := 0
		for _, arg := range args {
			if arg.Kind() == reflect.Interface {
				arg = arg.Elem()
			}
			switch arg.Kind() {
			case reflect.Map, reflect.Slice, reflect.Array:
				n += arg.Len()
			}
		}
		if err := b.work(n / 8); err != nil {
			return err
		}
		return b.spend(times(n, perItem))
	}
}

// urlJoinCost: escaping the parts makes up to three bytes of one.
func urlJoinCost(b *Budget, args []reflect.Value) error {
	n := 0
	for it := args[0].MapRange(); it.Next(); {
		n = plus(n, textLength([]reflect.Value{it.Value()}))
		if err := b.work(1); err != nil {
			return err
		}
	}
	return b.textCost(times(8, n))
}

// maxVersion limits the length of a version or constraint; the library matches it with several regular expressions.
const maxVersion = 1000

func versionCost(b *Budget, args []reflect.Value) error {
	for _, arg := range args {
		if arg.Len() > maxVersion {
			return limitf("a version has more than %d bytes", maxVersion)
		}
	}
	return b.work(100)
}

// sortCost takes the cost of sorting n texts with this total length.
func (b *Budget) sortCost(n, bytes int) error {
	rounds := bits.Len(uint(n))
	if err := b.work(times(n, rounds)/8 + times(bytes, rounds)>>13); err != nil {
		return err
	}
	return b.spend(times(n, 40))
}
