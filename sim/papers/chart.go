package papers

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is a figure to draw: lines over numbers, or bars side by side if Groups has names.
type Chart struct {
	Name   string // of the file, without its extension
	Title  string
	X, Y   string   // labels of the axes
	Groups []string // of bars
	Top    float64  // end of the Y axis, which cuts off higher values; 0: the highest value
	Log    bool     // both axes of lines are logarithmic
	Series []Series
}

// Series is a line, or one bar in each group.
type Series struct {
	Name   string
	X      []float64 // of lines
	Y      []float64
	Dashed bool
}

// palette is Okabe and Ito's, which colour-blind readers can tell apart.
var palette = []color.Color{
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	color.RGBA{A: 0xff},
}

// WriteCharts draws every chart into dir as NAME.svg and returns the files' names.
func (r *Report) WriteCharts(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("plots: %w", err)
	}
	var names []string
	for _, c := range r.Charts {
		name := filepath.Join(dir, c.Name+".svg")
		if err := c.writeFile(name); err != nil {
			return names, fmt.Errorf("plot %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

func (c Chart) writeFile(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.WriteSVG(f); err != nil {
		return err
	}
	return f.Close()
}

// legendWidth is the width reserved for the legend on the right.
func (c Chart) legendWidth() vg.Length {
	legend := plot.NewLegend()
	width := vg.Length(0)
	for _, s := range c.Series {
		width = max(width, legend.TextStyle.Width(s.Name))
	}
	return max(4*vg.Centimeter, legend.ThumbnailWidth+width+vg.Points(16))
}

// WriteSVG draws the chart.
func (c Chart) WriteSVG(w io.Writer) error {
	width := max(16*vg.Centimeter, vg.Length(len(c.Groups))*vg.Centimeter*6/5) + c.legendWidth()
	canvas := vgsvg.New(width, 10*vg.Centimeter)
	if err := c.drawOn(draw.New(canvas)); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

func (c Chart) drawOn(canvas draw.Canvas) error {
	p, legend := plot.New(), plot.NewLegend()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	p.Add(plotter.NewGrid())
	add := c.addLines
	if len(c.Groups) > 0 {
		add = c.addBars
	}
	if err := add(p, &legend); err != nil {
		return err
	}
	if c.Top > 0 {
		p.Y.Max = c.Top
	}
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	legendWidth := c.legendWidth()
	p.Draw(draw.Crop(canvas, 0, -legendWidth, 0, 0))
	legend.Left, legend.Top = true, true
	legend.Padding = vg.Points(3)
	legend.Draw(draw.Crop(canvas, canvas.Size().X-legendWidth+vg.Points(8), 0, 0, -vg.Points(24)))
	return nil
}

// color returns the color of a series. If some series are dashed, each two share a color.
func (c Chart) color(i int) color.Color {
	if slices.ContainsFunc(c.Series, func(s Series) bool { return s.Dashed }) {
		i /= 2
	}
	return palette[i%len(palette)]
}

func (c Chart) addLines(p *plot.Plot, legend *plot.Legend) error {
	for i, s := range c.Series {
		points := make(plotter.XYs, len(s.Y))
		for k := range s.Y {
			points[k] = plotter.XY{X: s.X[k], Y: s.Y[k]}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		line.Color, dots.Color = c.color(i), c.color(i)
		dots.Shape = draw.CircleGlyph{}
		line.Width = vg.Points(1.5)
		if s.Dashed {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(line, dots)
		legend.Add(s.Name, line)
	}
	if len(c.Series) > 0 && len(c.Series[0].X) <= maxTicks {
		p.X.Tick.Marker = ticks(c.Series[0].X)
	}
	if c.Log {
		p.X.Scale, p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = p.X.Min/1.2, p.X.Max*1.2, p.Y.Min/1.2, p.Y.Max*1.2
	}
	return nil
}

// maxTicks is the largest number of points at which the X axis of lines has a tick for each.
const maxTicks = 10

// ticks returns a tick for each point; points ascend. A tick that is too close to the last label
// gets no label.
func ticks(points []float64) (all plot.ConstantTicks) {
	const minGap = 0.04 // share of the axis
	labelled := math.Inf(-1)
	for _, x := range points {
		t := plot.Tick{Value: x}
		if x-labelled >= minGap*(points[len(points)-1]-points[0]) {
			t.Label, labelled = strconv.FormatFloat(x, 'g', 4, 64), x
		}
		all = append(all, t)
	}
	return all
}

func (c Chart) addBars(p *plot.Plot, legend *plot.Legend) error {
	width := vg.Points(24) / vg.Length(len(c.Series))
	for i, s := range c.Series {
		values := make(plotter.Values, len(s.Y))
		for k, y := range s.Y {
			values[k] = y
			if c.Top > 0 {
				values[k] = min(y, c.Top)
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		bars.Color = c.color(i)
		bars.LineStyle.Width = 0
		bars.Offset = width * (vg.Length(i) - vg.Length(len(c.Series)-1)/2)
		p.Add(bars)
		legend.Add(s.Name, bars)
	}
	p.NominalX(c.Groups...)
	p.Y.Min = 0
	p.X.Tick.Label.Rotation = math.Pi / 6
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
	return nil
}
