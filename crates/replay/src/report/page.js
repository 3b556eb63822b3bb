
(function () {
  var call = document.getElementById("call");
  var head = document.getElementById("head");
  var map = document.getElementById("map");
  var seen = document.getElementById("seen");
  var sound = document.getElementById("sound");
  var board = document.querySelector(".board");
  var scroll = document.querySelector(".scroll");
  var end = Number(board.dataset.end);
  function place() {
    var all = scroll.scrollWidth;
    map.classList.toggle("whole", all <= scroll.clientWidth + 1);
    seen.style.left = scroll.scrollLeft / all * 100 + "%";
    seen.style.width = scroll.clientWidth / all * 100 + "%";
  }
  function centre(share) {
    scroll.scrollLeft = share * scroll.scrollWidth - scroll.clientWidth / 2;
  }
  function go(event) {
    var box = map.getBoundingClientRect();
    centre((event.clientX - box.left) / box.width);
  }
  map.addEventListener("pointerdown", function (event) {
    map.setPointerCapture(event.pointerId);
    go(event);
  });
  map.addEventListener("pointermove", function (event) {
    if (event.buttons) go(event);
  });
  scroll.addEventListener("scroll", place);
  window.addEventListener("resize", place);
  centre(Number(board.dataset.focus) / end);
  place();
  if (!sound) return;
  document.body.classList.add("playable");
  function show() {
    var x = sound.currentTime * 1000 / end * call.viewBox.baseVal.width;
    head.setAttribute("x1", x);
    head.setAttribute("x2", x);
    var at = x - scroll.scrollLeft;
    if (!sound.paused && (at < 0 || at > scroll.clientWidth * 0.9)) scroll.scrollLeft = x - 60;
  }
  call.addEventListener("click", function (event) {
    var box = call.getBoundingClientRect();
    sound.currentTime = (event.clientX - box.left) / box.width * end / 1000;
    show();
    sound.play();
  });
  sound.addEventListener("timeupdate", show);
})();
