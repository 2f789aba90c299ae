package mapreduce

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type (
	rounds int
	Base   struct {
		Rank float64
		Name string
	}
	base struct{ Damping float64 }
	// same has the names of Base in JSON, by tags.
	same struct {
		A float64 `json:"Rank"`
		B int     `json:"name"`
	}
	embedder struct {
		N        int
		Children []embedsBack
	}
	embedsBack struct{ embedder }
	selfish    struct {
		*selfish
		N int
	}
	// ownStamp has its own method, although it embeds a type with one.
	ownStamp struct {
		time.Time
		Zone string
	}
	// onlyText cannot be read again.
	onlyText struct{ n int }
)

func (s ownStamp) MarshalJSON() ([]byte, error) {
	return json.Marshal([]string{s.Time.Format(time.RFC3339), s.Zone})
}

func (s *ownStamp) UnmarshalJSON(text []byte) error {
	var parts [2]string
	err := json.Unmarshal(text, &parts)
	if err != nil {
		return err
	}
	s.Time, err = time.Parse(time.RFC3339, parts[0])
	s.Zone = parts[1]
	return err
}

func (onlyText) MarshalText() ([]byte, error) { return []byte("x"), nil }

// TestParams: parameters are refused exactly if a worker would not get all of them.
func TestParams(t *testing.T) {
	addr, day := netip.MustParseAddr("10.0.0.1"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		value   any
		refused string // empty: a worker gets the value
	}{
		{struct{ rounds }{7}, "params.rounds is not exported, or left out of JSON"},
		{struct {
			rounds `json:"rounds"`
		}{7}, "params.rounds is not exported, or left out of JSON"},
		{struct{ *rounds }{new(rounds(7))}, "params.rounds is not exported, or left out of JSON"},
		{struct {
			A int `json:"-"`
		}{7}, "params.A is not exported, or left out of JSON"},
		{struct {
			Base
			Rank float64
		}{Base{1, "b"}, 2}, `params.Base.Rank and params.Rank have the name "Rank" in JSON`},
		{struct {
			Rank float64
			Base *struct{ Base }
		}{2, &struct{ Base }{Base{1, "b"}}}, ""},
		{struct {
			Base `json:"base"`
			Rank float64
		}{Base{1, "b"}, 2}, ""},
		{struct {
			base `json:"b"`
			N    int
		}{base{1}, 2}, ""},
		{struct {
			base
			*Base
		}{base{1}, &Base{1, "b"}}, ""},
		{struct {
			A int `json:"n"`
			B int `json:"N"`
		}{1, 2}, ""},
		{struct {
			Base
			same
		}{Base{1, "b"}, same{2, 3}}, `params.Base.Rank and params.same.A have the name "Rank" in JSON`},
		{struct {
			A int `json:"B"`
			B int
		}{1, 2}, `params.A and params.B have the name "B" in JSON`},
		{embedsBack{embedder{1, []embedsBack{{embedder{N: 2}}}}}, ""},
		{embedder{1, []embedsBack{{embedder{N: 2}}}}, ""},
		{selfish{&selfish{N: 1}, 2}, "params.selfish has the type mapreduce.selfish, which embeds itself"},
		{addr, ""},
		{map[netip.Addr][]netip.Addr{addr: {addr}}, ""},
		{struct{ netip.Addr }{addr}, ""},
		{struct {
			netip.Addr
			Port int
		}{addr, 1}, "params has the method MarshalText of an embedded field"},
		{struct {
			time.Time
			N int
		}{day, 1}, "params has the method MarshalJSON of an embedded field"},
		{[]struct {
			time.Time
			N int
		}{{day, 1}}, "params has the method MarshalJSON of an embedded field"},
		{struct {
			time.Time
			netip.Addr
		}{day, addr}, "params has the method MarshalJSON of an embedded field"},
		{struct {
			A netip.Addr
			T time.Time
			S ownStamp
		}{addr, day, ownStamp{day, "z"}}, ""},
		{struct{ N big.Int }{*big.NewInt(5)}, ""},
		{struct{ N *big.Int }{big.NewInt(5)}, ""},
		{[2]big.Int{*big.NewInt(5)}, ""},
		{map[string]*big.Int{"n": big.NewInt(5)}, ""},
		{map[string]big.Int{"n": *big.NewInt(5)}, "params.neg is not exported"},
		{onlyText{1}, "params.n is not exported"},
	} {
		p := reflect.New(reflect.TypeOf(c.value))
		p.Elem().Set(reflect.ValueOf(c.value))
		err := checkParams(p.Type().Elem())
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.HasPrefix(err.Error(), c.refused)) {
			t.Errorf("%#v: got %v, want %q", c.value, err, c.refused)
		}
		back := reflect.New(p.Type().Elem())
		text, errJSON := json.Marshal(p.Interface())
		errJSON = errors.Join(errJSON, json.Unmarshal(text, back.Interface()))
		if kept := errJSON == nil && reflect.DeepEqual(back.Interface(), p.Interface()); kept != (c.refused == "") {
			t.Errorf("%#v: a worker gets %#v, by %s, %v", c.value, back.Elem(), text, errJSON)
		}
	}
}
