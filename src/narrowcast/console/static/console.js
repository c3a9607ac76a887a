"use strict";
// The page of a running system. Numbers come once a second; what is drawn from them is changed in place.
(() => {
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const THIN = "\u202f";
  let token = "", samples = [], events = [], mapVersion = -1, mapParts = new Map(), state = null, proposal = null;

  // Words and numbers.
  const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const number = (x) => (x === null || x === undefined ? "–" : Math.abs(x) >= 100 || Number.isInteger(x) ? plain.format(x) : fine.format(x));
  const rate = (x) => (x === undefined ? "–" : `${number(Math.round(x * 10) / 10)}${THIN}/s`);
  const percent = (x) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(1)}${THIN}%`);
  const bytes = (x) => (x >= 1e6 ? `${fine.format(x / 1e6)} M` : x >= 1e3 ? `${fine.format(x / 1e3)} k` : number(Math.round(x)));
  const clock = (s) => new Date(s * 1000).toLocaleTimeString("en-GB");
  const text = (node, value) => { if (node.textContent !== value) node.textContent = value; };
  const set = (node, name, value) => { if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value); };
  const make = (name, attributes = {}, inside = "") => {
    const svg = ["svg", "g", "rect", "line", "polyline", "circle", "text", "title"].includes(name);
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (inside) node.textContent = inside;
    return node;
  };

  // The console, asked with the token; a refusal shows the form for it.
  const ask = async (path, body) => {
    const headers = { Authorization: `Bearer ${token}` };
    const options = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`/api/${path}`, options);
    const answer = await response.json();
    if (response.status === 401) enter();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  };
  const enter = () => {
    $("live").hidden = true;
    $("enter").hidden = false;
    text($("headline"), "Who is there?");
    health({ level: "warn", says: "The token is missing or wrong." });
  };

  // Live numbers, by server-sent events; fetched, since an EventSource cannot bring a token in a header.
  const follow = async () => {
    for (;;) {
      try {
        const response = await fetch("/api/live", { headers: { Authorization: `Bearer ${token}` } });
        if (response.status === 401) { enter(); return; }
        if (!response.ok) throw new Error(String(response.status));
        $("enter").hidden = true;
        $("live").hidden = false;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          const parts = (rest + value).split("\n\n");
          rest = parts.pop();
          for (const part of parts) {
            const [name, data] = part.split("\n").map((line) => line.slice(line.indexOf(":") + 2));
            take(name, JSON.parse(data));
          }
        }
      } catch (error) {
        if (!(error instanceof TypeError)) console.warn(error);
      }
      health({ level: "bad", says: "The console itself does not answer; trying again." });
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  };

  const take = (name, data) => {
    if (name === "hello") {
      samples = data.samples;
      events = data.events;
      text($("version"), data.version);
      $("read-only").hidden = data.changes;
      $("changes").hidden = !data.changes;
      offerOthers(data.others);
      about();
      drawEvents();
      return;
    }
    performance.mark("refresh-begins");
    state = data;
    if (data.sample) samples.push(data.sample);
    if (samples.length > 600) samples.shift();
    const last = events.length ? events[events.length - 1].id : 0;
    const news = data.events.filter((event) => event.id > last);
    events.push(...news);
    if (news.length) { drawEvents(); if (news.some((event) => event.what === "plan")) about(); }
    head();
    if (data.map !== mapVersion) fetchMap(data.map);
    else rates();
    edges();
    groups();
    processes();
    chart();
    performance.measure("refresh", "refresh-begins");
    document.body.dataset.refreshed = String(Number(document.body.dataset.refreshed || 0) + 1);
  };

  const health = ({ level, says }) => { set($("health"), "data-level", level); text($("says"), says); };
  const head = () => {
    const { totals, epoch } = state;
    health(state.health);
    const many = totals.subscribers === 1 ? "1 subscriber" : `${number(totals.subscribers)} subscribers`;
    text($("headline"), totals.messages_s > 0 ? `Delivering ${number(Math.round(totals.delivered_s))} useful messages/s to ${many}` : `Quiet: nothing is being sent to ${many}`);
    for (const name of ["messages_s", "delivered_s", "unasked_s", "lag", "repaired", "gaps", "subscribers"]) text($(`t-${name}`), number(Math.round(totals[name] * 10) / 10));
    const got = totals.delivered_s + totals.unasked_s;
    text($("t-unasked-share"), got > 0 ? `messages/s dropped, ${percent(totals.unasked_s / got)} of what arrives` : "messages/s received and dropped");
    text($("t-subscriptions"), `${number(totals.subscriptions)} subscriptions`);
    text($("t-epoch"), number(epoch.current));
    text($("t-phase"), epoch.phase === "steady" ? "of the plan in force" : `${epoch.phase} ${epoch.next}`);
    $("t-gaps").parentElement.classList.toggle("alarm", totals.gaps > 0);
  };

  // The map.
  const fetchMap = async (version) => {
    mapVersion = version;
    const { svg } = await ask("map");
    $("map-drawing").innerHTML = svg;
    mapParts = new Map();
    const remember = (key, kind, node) => {
      if (!mapParts.has(key)) mapParts.set(key, { rate: [], leg: [], box: [] });
      mapParts.get(key)[kind].push(node);
    };
    for (const kind of ["rate", "leg", "box"]) for (const node of $("map-drawing").querySelectorAll(`[data-${kind}]`)) remember(node.dataset[kind], kind, node);
    rates();
  };
  const rates = () => {
    const found = state.rates, top = Math.max(1e-9, ...Object.values(found)), absent = new Set(state.absent);
    for (const [key, parts] of mapParts) {
      const value = found[key];
      const words = absent.has(key) ? "says nothing" : rate(value);
      for (const node of parts.rate) text(node, words);
      for (const node of parts.box) node.classList.toggle("absent", absent.has(key));
      const thick = value > 0 ? (1 + 7 * Math.sqrt(value / top)).toFixed(1) : "1";
      for (const node of parts.leg) { set(node, "stroke-width", thick); node.classList.toggle("idle", !(value > 0)); }
    }
  };

  // Tables whose rows stay and whose cells change.
  const rows = (body, list, columns) => {
    while (body.rows.length > list.length) body.deleteRow(-1);
    list.forEach((item, i) => {
      let row = body.rows[i];
      if (!row) {
        row = body.insertRow();
        for (const { label, num } of columns) {
          const cell = row.insertCell();
          cell.dataset.label = label;
          if (num) cell.className = "num";
        }
      }
      columns.forEach(({ show }, j) => show(row.cells[j], item));
    });
  };
  const linked = (cell, asks, label, under) => {
    if (!cell.firstChild) { cell.append(make("a")); if (under !== undefined) cell.append(make("small")); }
    set(cell.firstChild, "href", `#ask=${asks}`);
    text(cell.firstChild, label);
    if (under !== undefined) { text(cell.lastChild, under); set(cell.lastChild, "title", under); }
  };
  const PARTS = [["b-useful", ["useful"]], ["b-edge", ["flow", "profile"]], ["b-session", ["session"]], ["b-away", ["group"]]];
  const bars = (cell, measured, predicted, words) => {
    if (!cell.firstChild) {
      const svg = make("svg", { class: "pair-bars", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img" });
      for (const [y, height] of [[0, 6.6], [7.4, 2.6]]) for (const [style] of PARTS) svg.append(make("rect", { class: style, y, height, x: 0, width: 0 }));
      cell.append(svg);
    }
    const svg = cell.firstChild;
    set(svg, "aria-label", words);
    [measured, predicted].forEach((shares, line) => {
      let x = 0;
      PARTS.forEach(([, names], k) => {
        const part = 100 * Math.min(1, names.reduce((sum, name) => sum + (shares[name] || 0), 0));
        const node = svg.children[line * PARTS.length + k];
        set(node, "x", x.toFixed(1));
        set(node, "width", Math.max(0, Math.min(part, 100 - x)).toFixed(1));
        x += part;
      });
    });
  };
  const shares = (measured, predicted) => `useful ${percent(measured.useful)} measured, ${percent(predicted.useful)} predicted; kept away ${percent(measured.group)} measured, ${percent(predicted.group)} predicted`;
  const amount = (name) => (cell, item) => text(cell, number(Math.round(item[name] * 10) / 10));
  const alarming = (name) => (cell, item) => { text(cell, number(item[name])); cell.classList.toggle("alarm", item[name] > 0); };
  const EDGES = [
    { label: "subscriber", show: (cell, item) => linked(cell, item.asks, item.label, item.wants) },
    { label: "measured / predicted", show: (cell, item) => bars(cell, item.measured, item.predicted, shares(item.measured, item.predicted)) },
    { label: "useful/s", num: true, show: amount("useful_s") },
    { label: "unasked/s", num: true, show: amount("unasked_s") },
    { label: "ms / bound", num: true, show: (cell, item) => { text(cell, item.latency_ms === null ? "–" : item.latency_ms.toFixed(1) + (item.bound_ms === null ? "" : ` / ${item.bound_ms.toFixed(1)}`)); cell.classList.toggle("alarm", item.bound_ms !== null && item.latency_ms > item.bound_ms); } },
    { label: "lag", num: true, show: amount("lag") },
    { label: "repaired", num: true, show: amount("repaired") },
    { label: "gaps", num: true, show: alarming("gaps") },
  ];
  const GROUPS = [
    { label: "group", show: (cell, item) => linked(cell, item.asks, `group ${item.group}`) },
    { label: "measured / predicted", show: (cell, item) => bars(cell, { useful: item.share }, { useful: item.predicted }, `${percent(item.share)} measured, ${percent(item.predicted)} predicted`) },
    { label: "messages/s", num: true, show: amount("messages_s") },
    { label: "share", num: true, show: (cell, item) => text(cell, percent(item.share)) },
    { label: "predicted", num: true, show: (cell, item) => text(cell, percent(item.predicted)) },
    { label: "edges", num: true, show: amount("members") },
  ];
  const WORDS = { up: "up", leads: "leads", late: "says nothing", gone: "gone" };
  const PROCESSES = [
    { label: "process", show: (cell, item) => text(cell, item.name) },
    { label: "role", show: (cell, item) => text(cell, item.role) },
    { label: "state", show: (cell, item) => {
      if (!cell.firstChild) cell.append(make("span", { class: "state" }));
      text(cell.firstChild, WORDS[item.state]);
      set(cell.firstChild, "data-state", item.state);
    } },
    { label: "frames/s", num: true, show: amount("frames_s") },
    { label: "bytes/s", num: true, show: (cell, item) => text(cell, bytes(item.bytes_s)) },
    { label: "trouble", show: (cell, item) => text(cell, item.trouble || "none") },
  ];
  const edges = () => {
    rows($("edges"), state.edges, EDGES);
    const left = state.totals.subscribers - state.edges.length;
    text($("edges-more"), left > 0 ? `${number(left)} more get less unasked; find them by name above.` : state.edges.length ? "" : "Nobody subscribes.");
  };
  const groups = () => {
    $("groups").hidden = !state.groups.length;
    rows($("group-rows"), state.groups, GROUPS);
    const left = state.totals.groups - state.groups.length;
    text($("groups-more"), left > 0 ? `${number(left)} more carry less.` : "");
  };
  const processes = () => rows($("process-rows"), state.processes, PROCESSES);

  // Over time.
  const drawEvents = () => {
    const list = $("events");
    const shown = events.slice(-60).reverse();
    list.replaceChildren(...shown.map((event) => {
      const item = make("li", { "data-level": event.level });
      item.append(make("time", {}, clock(event.at)), make("span", {}, event.text));
      return item;
    }));
    if (!shown.length) list.append(make("li", {}, "Nothing yet."));
  };
  const nice = (top) => { const power = 10 ** Math.floor(Math.log10(top || 1)); return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= top) || 1; };
  let frame = null;
  const chart = () => {
    const svg = $("chart"), width = Math.round(svg.clientWidth), height = Math.round(svg.clientHeight);
    if (!width || samples.length < 2) return;
    if (!frame || frame.width !== width || frame.height !== height) {
      svg.replaceChildren();
      set(svg, "viewBox", `0 0 ${width} ${height}`);
      frame = { width, height, lines: ["sent", "useful", "wasted"].map((name) => make("polyline", { class: name })) };
      frame.axes = make("g");
      frame.marks = make("g");
      svg.append(frame.axes, frame.marks, ...frame.lines);
    }
    const end = samples[samples.length - 1][0], begin = Math.min(samples[0][0], end - 30);
    const top = nice(Math.max(1, ...samples.map((s) => Math.max(s[1], s[2], s[3]))));
    const left = 12 + 7.5 * number(top).length, right = width - 8, low = height - 22, high = 16;
    const x = (t) => left + ((right - left) * (t - begin)) / (end - begin);
    const y = (v) => low - ((low - high) * v) / top;
    frame.lines.forEach((line, k) => set(line, "points", samples.map((s) => `${x(s[0]).toFixed(1)},${y(s[k + 1]).toFixed(1)}`).join(" ")));
    const axes = [];
    for (const v of [0, top / 2, top]) {
      axes.push(make("line", { class: "axis", x1: left, x2: right, y1: y(v), y2: y(v) }), make("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, number(v)));
    }
    const span = end - begin, step = [10, 30, 60, 120, 300].find((s) => span / s <= Math.max(3, width / 110)) || 300;
    for (let t = Math.ceil(begin / step) * step; t <= end; t += step) if (x(t) > left + 24 && x(t) < right - 24) axes.push(make("text", { x: x(t).toFixed(1), y: height - 5, "text-anchor": "middle" }, clock(t)));
    frame.axes.replaceChildren(...axes);
    const marks = [];
    for (const event of events) {
      if (event.at < begin) continue;
      const at = Math.min(x(event.at), right).toFixed(1), dot = make("circle", { class: `mark-dot ${event.what === "process" ? (event.level === "good" ? "good" : "process") : ""}`, cx: at, cy: high - 8, r: 4.5 });
      dot.append(make("title", {}, `${clock(event.at)}: ${event.text}`));
      marks.push(make("line", { class: "mark", x1: at, x2: at, y1: high - 4, y2: low }), dot);
    }
    frame.marks.replaceChildren(...marks);
  };

  new ResizeObserver(() => chart()).observe($("chart"));

  // Questions.
  const explain = async (asks) => {
    const [what, name] = [asks.slice(0, asks.indexOf(":")), decodeURIComponent(asks.slice(asks.indexOf(":") + 1))];
    const panel = $("panel");
    text($("panel-title"), `${what} ${name}`);
    text($("panel-body"), "Looking …");
    if (!panel.open) panel.showModal();
    $("panel-body").focus();
    try {
      const found = await ask(`explain?what=${encodeURIComponent(what)}&name=${encodeURIComponent(name)}`);
      $("panel-body").innerHTML = `<h3>Now</h3>${found.live}${found.plan ? `<h3>In the plan</h3>${found.plan}` : ""}`;
    } catch (error) { text($("panel-body"), error.message); }
  };
  const hash = () => { if (location.hash.startsWith("#ask=")) explain(location.hash.slice(5)); };
  $("panel").addEventListener("close", () => history.replaceState(null, "", location.pathname));
  window.addEventListener("hashchange", hash);

  let asked = 0;
  const find = async () => {
    const mine = ++asked, q = $("q").value.trim();
    const found = q ? (await ask(`find?q=${encodeURIComponent(q)}`)).found : [];
    if (mine !== asked) return;
    $("found").replaceChildren(...found.map(({ what, name, asks }) => {
      const item = make("li");
      item.append(make("a", { href: `#ask=${asks}` }, `${what === "node" ? "broker" : what} ${name}`));
      return item;
    }));
    if (q && !found.length) $("found").append(make("li", {}, "Nothing has this name."));
  };
  $("q").addEventListener("input", find);
  $("find").addEventListener("submit", (event) => { event.preventDefault(); find(); });

  const busy = async (form, says, work) => {
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    says.classList.remove("wrong");
    text(says, "Working it out …");
    try { await work(); } catch (error) { says.classList.add("wrong"); text(says, error.message); }
    buttons.forEach((button) => { button.disabled = false; });
  };
  $("ask-more").addEventListener("submit", (event) => {
    event.preventDefault();
    busy(event.target, $("whatif-says"), async () => {
      const found = await ask(`whatif?more=${encodeURIComponent($("more").value)}`);
      text($("whatif-says"), found.says);
      text($("whatif-lead"), found.lead);
      $("whatif-drawing").innerHTML = found.html;
      bindWhatif(found.data);
    });
  });

  // Plans.
  const about = async () => {
    try {
      const found = await ask("about");
      text($("plans-lead"), found.kind ? `In force: a ${found.kind} plan, ${found.folder}` : `No plan to work from: ${found.why}`);
      for (const button of $("propose").querySelectorAll("button, input")) button.disabled = !found.kind;
      $("propose").querySelector("label").hidden = $("budget").hidden = found.kind !== "channels";
    } catch (error) { text($("plans-lead"), error.message); }
  };
  const offerOthers = (others) => {
    $("others").replaceChildren(...others.map((path, at) => {
      const button = make("button", { type: "button" }, `Review ${path}`);
      button.addEventListener("click", () => propose({ folder: at }));
      return button;
    }));
  };
  const propose = (body) => busy($("changes"), $("proposal-says"), async () => {
    $("proposal").replaceChildren();
    proposal = await ask("propose", body);
    text($("proposal-says"), `${proposal.how}. ${proposal.says}`);
    $("proposal").innerHTML = proposal.html;
    if (!proposal.moves) return;
    const install = make("button", { type: "button", class: "strong", id: "install" }, "Install …");
    install.addEventListener("click", () => { text($("confirm-says"), proposal.says); $("confirm").returnValue = "no"; $("confirm").showModal(); });
    const row = make("p", { class: "row end" });
    row.append(install);
    $("proposal").append(row);
  });
  $("propose").addEventListener("submit", (event) => {
    event.preventDefault();
    propose($("budget").value && !$("budget").hidden ? { budget: Number($("budget").value) } : {});
  });
  $("confirm").addEventListener("close", () => {
    if ($("confirm").returnValue !== "yes" || !proposal) return;
    busy($("plans"), $("proposal-says"), async () => {
      const { id } = proposal;
      proposal = null;
      $("proposal").replaceChildren();
      text($("proposal-says"), "Everybody prepares …");
      text($("proposal-says"), (await ask("install", { id })).says);
      about();
    });
  });

  $("read-report").addEventListener("click", () => busy($("report"), $("report-body"), async () => {
    const found = await ask("report");
    $("report-body").innerHTML = `<p><strong></strong></p><p class="summary"></p><ul class="tiles">${found.tiles}</ul>${found.sections}`;
    text($("report-body").querySelector("strong"), found.headline);
    text($("report-body").querySelector(".summary"), found.summary);
    bindReport(found.data, $("report-body"));
  }));

  // The token comes in the address, after the #, which no browser sends anywhere; then it stays in this tab.
  const remembered = () => {
    const given = location.hash.match(/^#token=([\w-]+)$/);
    if (given) {
      sessionStorage.setItem("token", given[1]);
      history.replaceState(null, "", location.pathname);
    }
    return sessionStorage.getItem("token") || "";
  };
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    token = $("token").value.trim();
    sessionStorage.setItem("token", token);
    follow();
  });
  token = remembered();
  if (token) { follow(); hash(); } else enter();
})();
