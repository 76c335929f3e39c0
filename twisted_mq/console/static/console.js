// What pages do better with a script; all of them work without it.
"use strict";

// A token behind the # never leaves the browser: it is put into the form, and out of the address.
const tokenForm = document.querySelector("[data-token-form]");
if (tokenForm && location.hash.length > 1) {
  const token = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  tokenForm.elements.token.value = token;
  tokenForm.submit();
}

for (const form of document.querySelectorAll("[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.confirm)) event.preventDefault();
  });
}

for (const all of document.querySelectorAll("[data-all]")) {
  const boxes = [...all.form.elements].filter((one) => one.name === all.dataset.all);
  all.addEventListener("change", () => boxes.forEach((box) => { box.checked = all.checked; }));
  all.form.addEventListener("change", () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  });
}

// A page of work that goes on looks again by itself while it is seen.
const again = document.querySelector("[data-again]");
if (again) {
  setInterval(() => { if (!document.hidden) location.reload(); }, again.dataset.again * 1000);
}
