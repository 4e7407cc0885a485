// A switch between the versions that lie beside this one; without a list of them there is none.
(async () => {
  const root = new URL(document.documentElement.dataset.content_root || './', location.href);
  const here = root.pathname.split('/').filter(Boolean).pop();
  const answer = await fetch(new URL('../versions.json', root)).catch(() => null);
  if (!answer || !answer.ok) return;
  const choice = document.createElement('select');
  choice.setAttribute('aria-label', 'Version of the documentation');
  for (const name of await answer.json()) choice.add(new Option(name, name, name === here, name === here));
  choice.addEventListener('change', () => { location.href = new URL(`../${choice.value}/`, root); });
  document.querySelector('footer').append(choice);
})();
