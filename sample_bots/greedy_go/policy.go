package main

import (
	"cmp"
	"slices"

	"example.org/linko-bot/linko"
)

const (
	thirteen = 13
	joker    = 14 // as a card, and as the value of a layer of jokers only

	manyCards  = 3    // a snatched layer of this size is worth having, whatever its value
	jokerWorth = 1000 // more than any other card
	deckWorth  = 6    // the card is unknown
	passWorth  = 99   // below every card that is held already, above every other card
)

// game is what the bot remembers of one game. Add a field if your bot remembers more.
type game struct {
	rules *linko.Ruleset
}

// newGame prepares for a game.
func newGame(start *linko.GameStart) *game {
	return &game{rules: start.GetRuleset()}
}

// decide returns one of the legal actions. It takes the most cards, without a plan.
func (g *game) decide(request *linko.Request) *linko.Action {
	view, legal := request.GetView(), request.GetLegal()
	switch request.GetKind() {
	case linko.DecisionKind_DECISION_KIND_PLAY:
		return g.bestPlay(view, legal)
	case linko.DecisionKind_DECISION_KIND_TAKE_OR_LEAVE:
		if isWorthHaving(view) {
			return choose(linko.Choice_CHOICE_TAKE)
		}
		return choose(linko.Choice_CHOICE_LEAVE)
	case linko.DecisionKind_DECISION_KIND_RECLAIM_OR_DISCARD:
		if isWorthHaving(view) {
			return choose(linko.Choice_CHOICE_RECLAIM)
		}
		return choose(linko.Choice_CHOICE_DISCARD)
	case linko.DecisionKind_DECISION_KIND_DRAW,
		linko.DecisionKind_DECISION_KIND_OPTIONAL_DRAW,
		linko.DecisionKind_DECISION_KIND_GHOST_SET:
		return mostWorthy(view, legal)
	default: // a kind that a later version of the protocol may add
		return legal[0]
	}
}

// bestPlay returns the play with the highest gain, then the fewest jokers, then the highest value.
func (g *game) bestPlay(view *linko.View, legal []*linko.Action) *linko.Action {
	return slices.MaxFunc(legal, func(a, b *linko.Action) int {
		one, other := a.GetPlay(), b.GetPlay()
		return cmp.Or(
			cmp.Compare(g.gain(view, one), g.gain(view, other)),
			cmp.Compare(other.GetJokers(), one.GetJokers()),
			cmp.Compare(one.GetValue(), other.GetValue()),
		)
	})
}

// gain counts the cards that a play adds to the own table and removes from other tables.
func (g *game) gain(view *linko.View, play *linko.Layer) uint32 {
	victims := uint32(0)
	for seat, table := range view.GetTables() {
		layers := table.GetLayers()
		if seat != int(view.GetSeat()) && len(layers) > 0 && g.snatches(play, layers[len(layers)-1]) {
			victims++
		}
	}
	return size(play) * (1 + victims)
}

// snatches reports whether a play would snatch another seat's top layer.
func (g *game) snatches(play, top *linko.Layer) bool {
	if size(play) != size(top) {
		return false
	}
	if play.GetValue() == 1 {
		return top.GetValue() == joker && g.rules.GetOnesSnatchJokers() ||
			top.GetValue() == thirteen && g.rules.GetOnesSnatchThirteens()
	}
	return top.GetValue() < play.GetValue()
}

// isWorthHaving reports whether the snatched layer is large or matches cards of the hand.
func isWorthHaving(view *linko.View) bool {
	layer := view.GetSnatched()
	return size(layer) >= manyCards || view.GetHand()[layer.GetValue()] >= 1
}

// mostWorthy returns the action with the highest worth; of equals, the first one.
func mostWorthy(view *linko.View, legal []*linko.Action) *linko.Action {
	return slices.MaxFunc(legal, func(a, b *linko.Action) int {
		return cmp.Compare(worth(view, a), worth(view, b))
	})
}

// worth rates a draw or a set of the ghost by its best card.
func worth(view *linko.View, action *linko.Action) uint32 {
	switch kind := action.GetKind().(type) {
	case *linko.Action_DrawDisplay: // a single card or a group
		best := uint32(0)
		for _, card := range kind.DrawDisplay.GetCards() {
			best = max(best, cardWorth(view, card))
		}
		return best
	case *linko.Action_GhostValue:
		return cardWorth(view, kind.GhostValue)
	}
	if action.GetChoice() == linko.Choice_CHOICE_PASS {
		return passWorth
	}
	return deckWorth
}

// cardWorth rates a card: jokers first, then by the number of copies in the hand, then by value.
func cardWorth(view *linko.View, card uint32) uint32 {
	if card == joker {
		return jokerWorth
	}
	return 100*view.GetHand()[card] + card
}

func size(layer *linko.Layer) uint32 {
	return layer.GetNaturals() + layer.GetJokers()
}

func choose(choice linko.Choice) *linko.Action {
	return &linko.Action{Kind: &linko.Action_Choice{Choice: choice}}
}
