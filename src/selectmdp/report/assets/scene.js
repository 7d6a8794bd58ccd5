// A scene on a canvas, by the rules of scene.py: places and radii in units of the world with y
// pointing up, widths and text in parts of the picture's width, shapes in order.

const DASH = 6;
const GAP = 4;
const HALO = 2; // white around an arrow with a head: what it lies on may be as dark as it is

/** Draw a scene over the whole canvas; `paint` may give a shape other colours. */
function drawScene(canvas, scene, paint) {
  const [x0, , x1, y1] = scene.bounds;
  const context = canvas.getContext("2d");
  const scale = canvas.width / (x1 - x0);
  const pen = {
    context,
    scale,
    pixel: canvas.width / scene.reference,
    place: (x, y) => [(x - x0) * scale, (y1 - y) * scale],
  };
  context.fillStyle = scene.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const shape of scene.shapes) DRAW[shape.shape](pen, paint(shape));
}

const DRAW = {
  disc(pen, disc) {
    const { context, pixel } = pen;
    const [x, y] = pen.place(disc.x, disc.y);
    const radius = disc.radius * pen.scale;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    fill(pen, disc);
    if (disc.outline === null || disc.width === 0) return;
    const width = Math.max(1, disc.width * pixel);
    const middle = Math.max(radius - width / 2, 0); // the line lies inside
    const count = Math.max(4, Math.round((2 * Math.PI * radius) / ((DASH + GAP) * pixel)));
    context.beginPath();
    context.arc(x, y, middle, 0, 2 * Math.PI);
    stroke(pen, disc.outline, width, disc.dashed ? (2 * Math.PI * middle) / count : 0);
  },

  box(pen, box) {
    const { context, pixel } = pen;
    const [right, up] = [box.width / 2, box.height / 2];
    const offsets = box.diamond
      ? [[right, 0], [0, up], [-right, 0], [0, -up]]
      : [[right, up], [-right, up], [-right, -up], [right, -up]];
    const corners = offsets.map(([dx, dy]) => pen.place(box.x + dx, box.y + dy));
    context.beginPath();
    corners.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
    fill(pen, box);
    if (box.outline === null || box.line === 0) return;
    const width = Math.max(1, box.line * pixel);
    if (!box.dashed) return stroke(pen, box.outline, width, 0);
    corners.forEach((start, i) => {
      const end = corners[(i + 1) % 4];
      const length = Math.hypot(end[0] - start[0], end[1] - start[1]);
      const count = Math.max(1, Math.round(length / ((DASH + GAP) * pixel)));
      context.beginPath();
      context.moveTo(...start);
      context.lineTo(...end);
      stroke(pen, box.outline, width, length / count);
    });
  },

  arrow(pen, arrow) {
    const { context, pixel } = pen;
    const [x0, y0] = pen.place(arrow.x0, arrow.y0);
    const [x1, y1] = pen.place(arrow.x1, arrow.y1);
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length === 0) return;
    const [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
    const head = Math.min(arrow.head * pixel, length);
    const neck = [x1 - head * dx, y1 - head * dy];
    const side = [-0.55 * head * dy, 0.55 * head * dx];
    const width = Math.max(1, arrow.width * pixel);
    const shaft = new Path2D();
    shaft.moveTo(x0, y0);
    shaft.lineTo(...neck);
    const tip = new Path2D();
    tip.moveTo(x1, y1);
    tip.lineTo(neck[0] + side[0], neck[1] + side[1]);
    tip.lineTo(neck[0] - side[0], neck[1] - side[1]);
    tip.closePath();
    if (head > 0) {
      stroke(pen, "white", width + 2 * HALO * pixel, 0, shaft);
      stroke(pen, "white", 2 * HALO * pixel, 0, tip);
    }
    stroke(pen, arrow.color, width, 0, shaft);
    context.fillStyle = arrow.color;
    context.fill(tip);
  },

  label(pen, label) {
    const { context } = pen;
    context.font = `${label.size * pen.pixel}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = label.color;
    context.fillText(label.text, ...pen.place(label.x, label.y));
  },
};

function fill({ context }, shape) {
  if (shape.fill === null) return;
  context.globalAlpha = shape.opacity;
  context.fillStyle = shape.fill;
  context.fill();
  context.globalAlpha = 1;
}

/** A path, or the one begun, as a line; dashes repeat after `period`, where that is not 0. */
function stroke({ context }, color, width, period, path = null) {
  const share = DASH / (DASH + GAP);
  context.setLineDash(period > 0 ? [share * period, (1 - share) * period] : []);
  context.strokeStyle = color;
  context.lineWidth = width;
  if (path === null) context.stroke();
  else context.stroke(path);
}
