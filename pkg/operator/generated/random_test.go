package generated_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/config/random"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
)

// TestRandomText: a value has its length, every character of its set and no other, each about as often.
func TestRandomText(t *testing.T) {
	t.Parallel()
	sets := []random.Charset{random.CharsetAlphanumeric, random.CharsetAlphabetic, random.CharsetNumeric,
		random.CharsetHex, random.CharsetSymbols}
	for _, set := range sets {
		t.Run(string(set), func(t *testing.T) {
			t.Parallel()
			const each = 2000
			characters := set.Characters()
			g := operator.GeneratedField{Length: each * len(characters), Characters: characters}
			text := generated.Random(g)
			if len(text) != g.Length {
				t.Fatalf("%d characters, want %d", len(text), g.Length)
			}
			if generated.Random(g) == text {
				t.Error("two values are equal")
			}
			for _, c := range characters {
				// Six standard deviations are 270; without the rejection, some characters come 20 % more often than others.
				if n := strings.Count(text, string(c)); n < each-300 || n > each+300 {
					t.Errorf("%q comes %d times, want about %d", c, n, each)
				}
			}
			if rest := strings.Trim(text, characters); rest != "" {
				t.Errorf("%q is not in the set", rest)
			}
		})
	}
}
