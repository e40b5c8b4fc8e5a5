(function () {
  "use strict";
  var form = document.getElementById("filter"), shown = document.getElementById("shown");
  var rows = Array.prototype.map.call(document.querySelectorAll("tr[data-for]"), function (row) {
    var panel = document.getElementById(row.dataset.for), part = row.closest(".part");
    return { row: row, panel: panel, part: part, text: (row.textContent + " " + panel.querySelector("p").textContent).toLowerCase() };
  });
  function field(name) { return form.elements.namedItem(name).value; }
  function apply() {
    var section = field("section"), kind = field("kind"), verdict = field("verdict");
    var words = field("words").toLowerCase().split(/\s+/).filter(Boolean), count = 0;
    rows.forEach(function (each) {
      var data = each.row.dataset;
      var fits = (!section || each.part.dataset.section === section) && (!kind || data.kind.split("\n").indexOf(kind) >= 0) &&
        (!verdict || (verdict === "counterexample" ? "counter" in data : verdict === "caution" ? "caution" in data : data.verdict === verdict)) &&
        words.every(function (word) { return each.text.indexOf(word) >= 0; });
      each.row.hidden = each.panel.hidden = !fits;
      count += fits ? 1 : 0;
    });
    document.querySelectorAll(".part").forEach(function (part) { part.hidden = !part.querySelector("tr[data-for]:not([hidden])"); });
    shown.textContent = count + " of " + rows.length + " scenarios shown";
  }
  function visit() {
    var id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch (error) { return; }
    var panel = id && document.getElementById(id);
    if (!panel || !panel.classList.contains("panel")) { return; }
    if (panel.hidden) { form.reset(); apply(); }
    panel.open = true;
    panel.scrollIntoView();
    panel.querySelector("summary").focus({ preventScroll: true });
  }
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.getElementById("open").addEventListener("click", function () {
    rows.forEach(function (each) { if (!each.panel.hidden) { each.panel.open = true; } });
  });
  document.getElementById("close").addEventListener("click", function () {
    rows.forEach(function (each) { each.panel.open = false; });
  });
  window.addEventListener("hashchange", visit);
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("tr[data-for] a");
    if (link && link.hash === location.hash) { visit(); }
  });
  apply();
  visit();
  window.addEventListener("load", visit);
})();
